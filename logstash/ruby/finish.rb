# The time to the digit, tags, the identity, and nothing that only the way here needed.
# Part of the configuration that ascend-elk renders.
require "digest"
require "securerandom"

def register(params)
  @failures = %w[_rubyexception _groktimeout _dateparsefailure]
  @of_input = %w[beats_input_codec_plain_applied beats_input_raw_event]
  @original = params["original"]
end

def filter(event)
  failure = (event.get("tags") || []).find { |tag| @failures.include?(tag) }
  tags = (event.get("[@metadata][tags]") || []).dup
  failure ? failed(event, failure, tags) : date(event, tags)
  kept = (event.get("tags") || []) - @of_input - @failures
  kept |= tags
  kept.empty? ? event.remove("tags") : event.set("tags", kept)
  strip(event)
  # Whole seconds: digits behind them cost more space than the rest of the time.
  event.set("[event][ingested]", LogStash::Timestamp.at(Time.now.to_i))
  [event]
end

def failed(event, failure, tags)
  event.set("[event][kind]", "pipeline_error")
  event.set("[error][message]", "Logstash failed on this line: #{failure}")
  event.set("message", event.get("[event][original]")) if event.get("[event][original]")
  tags << "ascend_pipeline_error"
end

def date(event, tags)
  return if event.get("[@metadata][time]").nil?
  time = event.get("[@metadata][date]")
  text = time.nil? ? "" : time.to_iso8601
  if text.empty? || text > "2262"
    tags.unshift("ascend_time_unparsed") unless tags.include?("ascend_time_unparsed")
  elsif text < "2000"
    # A device clock before the host set it: the time of reading counts.
    event.set("[ascend][clock][unsynchronised]", true)
  else
    event.set("@timestamp", LogStash::Timestamp.new("#{text[0, 19]}.#{event.get("[@metadata][fraction]")}Z"))
    event.remove("[ascend][clock]")
  end
end

# Which file (8 bytes), where in it (5), and what stood there (5), which differs once a file was truncated or
# replaced. In this order ids of neighbours begin alike, which takes a third of the space of random ones. An event
# of unknown origin is like no other.
def identity(host, path, offset, line)
  return SecureRandom.uuid if path.nil?
  file = Digest::SHA256.digest("#{host}|#{path}")[0, 8]
  place = [offset.is_a?(Integer) ? offset : 0].pack("q>")[3, 5]
  header = Digest::SHA256.digest(line)[0, 5]
  [file + place + header].pack("m0").tr("+/", "-_")
end

def strip(event)
  host = event.get("[host][name]")
  path = event.get("[log][file][path]")
  line = event.get("[event][original]").to_s
  line = line[0...(line.index("\n") || line.length)].chomp("\r")
  event.set("[@metadata][id]", identity(host, path, event.get("[log][offset]"), line))
  event.set("host", { "name" => host }) if host
  event.set("[log][file]", { "path" => path }) if path
  event.remove("[log][flags]")
  %w[agent ecs input @version].each { |name| event.remove(name) }
  event.remove("[event][timezone]")
  event.remove("[event][original]") unless @original
end
