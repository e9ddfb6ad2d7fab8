# What was refused becomes text, which no mapping refuses.
# Part of the configuration that ascend-elk renders.
def register(params)
end

def filter(event)
  text = event.to_json
  reason = event.get("[@metadata][dead_letter_queue][reason]").to_s
  event.to_hash.each_key { |name| event.remove(name) unless name == "@timestamp" }
  event.set("message", text)
  event.set("[error][message]", reason)
  event.set("[event][module]", "ascend")
  event.set("[event][kind]", "pipeline_error")
  [event]
end
