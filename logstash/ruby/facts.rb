# Merges what the guarded grok filters captured, in the order of the extractors: a field that is set stays.
# Generated tree of ascend-elk; facts.json beside this file says where captures go.
require "json"

def register(params)
  document = JSON.parse(File.read(params["table"]))
  @extractors = document["extractors"]
  @every = @extractors.map { |extractor| extractor["all"] && Regexp.new(extractor["all"]["regex"]) }
  @headline = document["headline"].map do |family, pattern|
    ["#{family}:", pattern && Regexp.new("\\A(?:#{pattern})")]
  end
end

def normalise(text, how)
  case how
  when "upper" then text.upcase
  when "lower" then text.downcase
  when "hex" then format("0x%x", text.to_i(16))
  when "hex8" then format("0x%08x", text.to_i(16))
  when "hex16" then format("0x%016x", text.to_i(16))
  when "triple"
    words = text.scan(/0[xX][0-9a-fA-F]+|\d+/)
    "(" + words.map { |word| format("0x%x", word.start_with?("0x", "0X") ? word.to_i(16) : word.to_i) }.join(",") + ")"
  else text
  end
end

def headline(codes)
  @headline.each do |family, pattern|
    codes.each do |code|
      next unless code.start_with?(family)
      bare = code[family.length..-1]
      return bare if pattern.nil? || pattern.match(bare)
    end
  end
  codes.first.split(":", 2).last
end

def filter(event)
  found = event.get("[@metadata][found]") || {}
  codes = []
  signals = event.get("[ascend][signal]") || []
  @extractors.each_with_index do |extractor, number|
    next unless found["e#{number}"]
    captured = event.get("[@metadata][facts][e#{number}]") || {}
    extractor["fields"].each do |name, target|
      value = captured[name]
      next if value.nil? || value == "" || !event.get(target).nil?
      factor = extractor["scale"][target]
      if factor
        value = value.is_a?(Integer) ? (value * factor).round : value * factor
      end
      event.set(target, value)
    end
    extractor["set"].each { |target, value| event.set(target, value) if event.get(target).nil? }
    signals |= extractor["signal"]
    next unless extractor["family"]
    texts = [captured["code"]]
    if extractor["all"]
      group = extractor["all"]["group"]
      texts = event.get("message").scan(@every[number]).map { |groups| groups[group] }
    end
    texts.each do |text|
      next if text.nil? || text == ""
      codes |= ["#{extractor["family"]}:#{normalise(text, extractor["normalise"])}"]
    end
  end
  event.set("[ascend][signal]", signals) unless signals.empty?
  unless codes.empty?
    event.set("[ascend][error][codes]", codes)
    event.set("[error][code]", headline(codes))
  end
  [event]
end
