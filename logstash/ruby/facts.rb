# Captures go to their fields in the order of the extractors; what is set already stays.
# Part of the configuration that ascend-elk renders.
require "json"

def register(params)
  tables = JSON.parse(File.read(params["tables"]))
  @extractors = tables["extractors"]
  @every = @extractors.map { |extractor| extractor["every"] && Regexp.new(extractor["every"]["regex"]) }
  @headline = tables["headline"].map do |family, pattern|
    ["#{family}:", pattern && Regexp.new("\\A(?:#{pattern})")]
  end
end

def hexadecimal(text, width)
  format("0x%0#{width}x", text.to_i(16))
end

def normalise(text, how)
  case how
  when "upper" then text.upcase
  when "lower" then text.downcase
  when "hex" then hexadecimal(text, 1)
  when "hex8" then hexadecimal(text, 8)
  when "hex16" then hexadecimal(text, 16)
  # The three words of the error registers
  when "triple" then "(" + text[1..-2].split(",").map { |word| hexadecimal(word.strip, 1) }.join(",") + ")"
  else text
  end
end

def headline(codes)
  @headline.each do |family, pattern|
    codes.each do |code|
      next unless code.start_with?(family)
      bare = code[family.length..-1]
      return bare if pattern.nil? || pattern.match?(bare)
    end
  end
  codes.first.split(":", 2).last
end

def reference(name)
  name.split(".").map { |part| "[#{part}]" }.join
end

def filter(event)
  found = event.get("[@metadata][found]") || {}
  message = event.get("message")
  codes = []
  signals = []
  @extractors.each_with_index do |extractor, number|
    next unless found[extractor["key"]]
    captured = event.get("[@metadata][facts][#{extractor["key"]}]") || {}
    extractor["fields"].each do |target|
      field = reference(target["field"])
      value = captured[target["slot"]]
      next if value.nil? || value == "" || !event.get(field).nil?
      factor = target["scale"]
      value = target["long"] ? (value * factor).round : value * factor if factor
      event.set(field, value)
    end
    if extractor["family"]
      texts = [captured["code"]]
      if extractor["every"]
        group = extractor["every"]["group"]
        texts = message.scan(@every[number]).map { |groups| groups[group] }
      end
      texts.each do |text|
        next if text.nil? || text == ""
        code = "#{extractor["family"]}:#{normalise(text, extractor["normalise"])}"
        codes << code unless codes.include?(code)
      end
    end
    extractor["set"].each do |name, value|
      field = reference(name)
      event.set(field, value) if event.get(field).nil?
    end
    signals |= extractor["signal"]
  end
  event.set("[ascend][signal]", signals) unless signals.empty?
  unless codes.empty?
    event.set("[ascend][error][codes]", codes)
    event.set("[error][code]", headline(codes))
  end
  [event]
end
