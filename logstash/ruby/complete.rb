# What the matched header says: level, severity, layer, constants; and its time, ready for the date filter.
# Part of the configuration that ascend-elk renders.
require "date"
require "json"

def register(params)
  @months = %w[Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec]
  tables = JSON.parse(File.read(params["tables"]))
  @formats = tables["formats"]
  @layers = tables["layers"]
  @severity = tables["severity"]
end

def reference(name)
  name.split(".").map { |part| "[#{part}]" }.join
end

def filter(event)
  tags = event.get("[@metadata][tags]") || []
  format = @formats[event.get("[@metadata][format]")]
  if format.nil?
    tags.unshift("ascend_unparsed")
  else
    describe(event, format)
    written = event.get("[ascend][clock][written]")
    tags.unshift("ascend_time_unparsed") if format["time"] && written && !time(event, format["time"], written)
  end
  event.set("[@metadata][tags]", tags)
  [event]
end

def describe(event, format)
  style = event.get("[@metadata][style]")
  event.set("[ascend][format]", style ? "#{format["name"]}/#{style}" : format["name"])
  format["set"].each { |name, value| event.set(reference(name), value) }
  layer = @layers[event.get("[ascend][module]")]
  event.set("[ascend][layer]", layer) if layer && event.get("[ascend][layer]").nil?
  level = event.get("[log][level]")
  return if level.nil?
  if format["level"].key?(level)
    level = format["level"][level]
    event.set("[log][level]", level)
  end
  severity = level.match?(/\A[0-9]+\z/) ? level.to_i : @severity[level]
  event.set("[event][severity]", severity) if severity
end

# Sets what the date filter reads: the time to the millisecond, and the digits that it cannot keep.
def time(event, kind, written)
  parts = send("time_#{kind.tr("-", "_")}", written, event.get("@timestamp"))
  return false if parts.nil?
  date, clock, fraction, zone = parts
  year, month, day = date.split("-").map(&:to_i)
  return false unless year.positive? && Date.valid_date?(year, month, day)
  return false if clock[0, 2] > "23" || clock[3, 2] > "59" || clock[6, 2] > "59" || year > 2261
  if zone.nil?
    event.set("[@metadata][zone]", event.get("[event][timezone]") || "UTC")
  else
    return false if zone[1, 2].to_i > 23
    event.set("[@metadata][zone]", zone)
  end
  fraction = fraction.to_s.ljust(6, "0")
  event.set("[@metadata][time]", "#{date}T#{clock}.#{fraction[0, 3]}")
  event.set("[@metadata][fraction]", fraction)
  true
end

def dated(text)
  match = /\A(\d{4})[-\/](\d\d)[-\/](\d\d)[ T-](\d\d:\d\d:\d\d)(?:[.,:](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?/.match(text)
  return nil if match.nil?
  zone = match[6]
  if zone == "Z"
    zone = "+00:00"
  elsif zone
    digits = zone.delete(":")
    minutes = [digits[3, 2].to_i, 59].min
    zone = format("%s:%02d", digits[0, 3], minutes)
  end
  ["#{match[1]}-#{match[2]}-#{match[3]}", match[4], match[5], zone]
end

def time_plog(text, _read)
  [text[0, 10], text[11, 8], text[20, 3] + text[24, 3], nil]
end

def time_plog_seconds(text, _read)
  dated(text)
end

def time_iso(text, _read)
  dated(text)
end

def time_slash(text, _read)
  dated(text)
end

def time_glog(text, read)
  date, rest = text.split(" ", 2)
  clock, fraction = rest.split(".", 2)
  return ["#{date[0, 4]}-#{date[4, 2]}-#{date[6, 2]}", clock, fraction, nil] if date.length == 8
  yearless(date[0..-3].to_i, date[-2..-1].to_i, clock, fraction, read)
end

def time_month_day(text, read)
  yearless(text[0, 2].to_i, text[3, 2].to_i, text[6, 8], nil, read)
end

def time_syslog(text, read)
  month = @months.index(text[0, 3])
  return nil if month.nil?
  day, clock = text[3..-1].split
  yearless(month + 1, day.to_i, clock, nil, read)
end

# The latest such day that the file can know of
def yearless(month, day, clock, fraction, read)
  limit = Time.at(read.to_i + 86_400).utc
  year = ([month, day] <=> [limit.month, limit.day]) == 1 ? limit.year - 1 : limit.year
  [format("%04d-%02d-%02d", year, month, day), clock, fraction, nil]
end
