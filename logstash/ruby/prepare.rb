# The line as read, where its header stands in the file, and its first line, which header patterns look at.
# Part of the configuration that ascend-elk renders.
require "json"

def register(params)
  @replacement = "\uFFFD"
  @datasets = JSON.parse(File.read(params["tables"]))["datasets"]
end

# Bytes of a piece of text in the file. A replacement character stands for one byte that was no UTF-8.
def bytes(text)
  text.bytesize - 2 * text.count(@replacement)
end

def cut?(text)
  text.each_line("\n").any? do |line|
    line = line.chomp("\n")
    line.length < 1024 && [1022, 1023].include?(bytes(line))
  end
end

def filter(event)
  text = event.get("message").to_s
  last = text.sub(/\n+\z/, "").rindex("\n")
  offset = event.get("[log][offset]")
  # Filebeat reports where the last line of a record begins that is not empty.
  event.set("[log][offset]", offset - bytes(text[0..last])) if last && offset
  tags = []
  flags = event.get("[log][flags]")
  tags << "ascend_truncated" if (text.length > 340 && cut?(text)) || (flags && flags.include?("truncated"))
  tags << "ascend_invalid_utf8" if text.include?(@replacement)
  text = text[0..-2] if text.end_with?("\r")
  first = text.index("\n")
  line = first ? text[0...first] : text
  more = first ? text[first..-1] : ""
  if first && line.end_with?("\r")
    line = line[0..-2]
    more = "\r" + more
  end
  source = event.get("[ascend][source]")
  unless @datasets.key?(source)
    source = "console"
    event.set("[ascend][source]", source)
  end
  event.set("[event][original]", text)
  event.set("[event][module]", "ascend")
  event.set("[event][dataset]", @datasets[source])
  event.set("[@metadata][line]", line)
  event.set("[@metadata][first]", line[0].to_s)
  event.set("[@metadata][more]", more) unless more.empty?
  event.set("[@metadata][tags]", tags)
  event.set("message", line)
  [event]
end
