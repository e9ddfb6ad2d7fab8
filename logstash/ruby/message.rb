# The text after the header, of all lines of the record.
# Part of the configuration that ascend-elk renders.
require "json"

def register(params)
  @formats = JSON.parse(File.read(params["tables"]))["formats"]
end

def filter(event)
  format = @formats[event.get("[@metadata][format]")]
  text = event.get("message").to_s
  text = event.get("[@metadata][rest]").to_s if format && !format["whole"]
  event.set("message", text + event.get("[@metadata][more]").to_s)
  [event]
end
