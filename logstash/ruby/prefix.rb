# A prefix was taken off: what stands behind it is the line.
# Part of the configuration that ascend-elk renders.
def register(params)
end

def filter(event)
  line = event.get("[@metadata][behind]").to_s
  event.set("[@metadata][line]", line)
  event.set("[@metadata][first]", line[0].to_s)
  event.set("message", line)
  [event]
end
