# A model of Logstash's filters, for the plugins and options that the rendered configuration uses, as their
# documentation describes them. Regular expressions are Ruby's own (Onigmo), of the family of Logstash's (Joni).
# Arguments: the configuration as JSON. Standard input: one event a line; output likewise.
require "date"
require "json"
require "time"

module LogStash
  class Timestamp
    attr_reader :time

    def initialize(value = Time.now.utc)
      @time = value.is_a?(String) ? Time.iso8601(value).utc : value.utc
    end

    def self.now = new
    def self.at(seconds) = new(Time.at(seconds))
    def to_i = @time.to_i
    def year = @time.year
    def to_iso8601 = @time.strftime(@time.nsec % 1_000_000 == 0 ? "%Y-%m-%dT%H:%M:%S.%LZ" : "%Y-%m-%dT%H:%M:%S.%NZ")
    def to_json(*args) = to_iso8601.to_json(*args)
    def to_s = to_iso8601
  end
end

class Event
  def initialize(data)
    @metadata = data.delete("@metadata") || {}
    @data = data
    @data["@timestamp"] = LogStash::Timestamp.new(@data["@timestamp"]) if @data["@timestamp"].is_a?(String)
  end

  def path(reference)
    parts = reference.scan(/\[([^\[\]]+)\]/).flatten
    parts.empty? ? [reference] : parts
  end

  def place(parts)
    parts.first == "@metadata" ? [@metadata, parts.drop(1)] : [@data, parts]
  end

  def get(reference)
    root, parts = place(path(reference))
    parts.reduce(root) { |node, part| node.is_a?(Hash) ? node[part] : nil }
  end

  def set(reference, value)
    root, parts = place(path(reference))
    node = parts[0..-2].reduce(root) do |inner, part|
      inner[part] = {} if inner[part].nil?
      raise TypeError, "#{reference}: #{part} is no object" unless inner[part].is_a?(Hash)
      inner[part]
    end
    node[parts.last] = value
  end

  def remove(reference)
    root, parts = place(path(reference))
    node = parts[0..-2].reduce(root) { |inner, part| inner.is_a?(Hash) ? inner[part] : nil }
    node.is_a?(Hash) ? node.delete(parts.last) : nil
  end

  def include?(reference) = !get(reference).nil?
  def to_hash = @data.dup
  def to_json(*args) = @data.to_json(*args)

  def tag(name)
    set("tags", (get("tags") || []) | [name])
  end

  def sprintf(text)
    text.gsub(/%\{([^{}]+)\}/) do |whole|
      value = get(Regexp.last_match(1))
      value.nil? ? whole : value.to_s
    end
  end

  def output
    @data.merge("@metadata" => { "id" => @metadata["id"] })
  end
end

class Grok
  REFERENCE = /%\{(\w+)(?::((?:\[[^\]]+\])+)(?::(int|float))?)?\}/

  def initialize(options, environment)
    @source, pattern = options["match"].first
    @library = {}
    options["patterns_dir"].each do |directory|
      Dir[File.join(environment.call(directory), "*")].sort.each do |file|
        File.foreach(file, chomp: true) do |line|
          next if line.empty? || line.start_with?("#")
          name, text = line.split(" ", 2)
          @library[name] = text
        end
      end
    end
    @captures = []
    @regex = Regexp.new(expand(pattern))
    @overwrite = options["overwrite"] || []
    @add = options["add_field"] || {}
    @failure = options.fetch("tag_on_failure", ["_grokparsefailure"])
  end

  def expand(pattern)
    pattern.gsub(REFERENCE) do
      name, field, kind = Regexp.last_match.captures
      inner = @library.fetch(name)
      if field.nil?
        "(?:#{expand(inner)})"
      else
        @captures << [field, kind]
        number = @captures.length - 1
        "(?<c#{number}>#{expand(inner)})"
      end
    end
  end

  def filter(event)
    value = event.get(@source)
    match = value.is_a?(String) ? @regex.match(value) : nil
    return @failure.each { |tag| event.tag(tag) } if match.nil?
    @captures.each_with_index do |(field, kind), number|
      text = match["c#{number}"]
      # keep_empty_captures is off
      next if text.nil? || text.empty?
      captured = { "int" => :to_i, "float" => :to_f }.key?(kind) ? text.send(kind == "int" ? :to_i : :to_f) : text
      present = event.get(field)
      if present.nil? || @overwrite.include?(field)
        event.set(field, captured)
      else
        event.set(field, [*present, captured])
      end
    end
    @add.each { |name, text| event.set(name, event.sprintf(text)) }
  end
end

class Mutate
  def initialize(options, _environment)
    @copy = options["copy"] || {}
    @add = options["add_field"] || {}
    unknown = options.keys - %w[id copy add_field]
    raise "mutate: #{unknown}" unless unknown.empty?
  end

  def filter(event)
    @copy.each { |from, to| event.set(to, event.get(from)) unless event.get(from).nil? }
    @add.each { |name, text| event.set(name, event.sprintf(text)) }
  end
end

class RubyScript
  def initialize(options, environment)
    file = environment.call(options["path"])
    params = (options["script_params"] || {}).transform_values do |value|
      value.is_a?(String) ? environment.call(value) : value
    end
    params = params.transform_values { |value| { "true" => true, "false" => false }.fetch(value, value) }
    @context = Object.new
    # As Logstash does: the script's methods become those of one object.
    @context.instance_eval(File.read(file, encoding: "UTF-8"), file)
    @context.register(params)
  end

  def filter(event)
    result = @context.filter(event)
    raise "a script must return its event" unless result == [event]
  rescue StandardError => error
    warn(error.full_message) if ENV["SHOW_ERRORS"]
    event.tag("_rubyexception")
  end
end

class DateFilter
  def initialize(options, _environment)
    @source, format = options["match"]
    raise "date: #{format}" unless format == "yyyy-MM-dd'T'HH:mm:ss.SSS"
    @zone, @target, @failure = options.values_at("timezone", "target", "tag_on_failure")
  end

  def filter(event)
    text, zone = event.get(@source), event.sprintf(@zone)
    seconds = zone == "UTC" ? "+00:00" : zone
    raise ArgumentError, zone unless seconds.match?(/\A[+-]\d\d:\d\d\z/)
    time = Time.strptime("#{text}#{seconds}", "%Y-%m-%dT%H:%M:%S.%L%z")
    event.set(@target, LogStash::Timestamp.new(time))
  rescue ArgumentError
    @failure.each { |tag| event.tag(tag) }
  end
end

PLUGINS = {
  "grok" => Grok, "mutate" => Mutate, "ruby" => RubyScript, "date" => DateFilter
}.freeze

class Pipeline
  def initialize(configuration, directory)
    environment = ->(text) { text.gsub("${ASCEND_CONFIG}", directory) }
    @steps = configuration.map { |item| compile(item, environment) }
  end

  def compile(item, environment)
    if item["plugin"]
      plugin = PLUGINS.fetch(item["plugin"]).new(item["options"], environment)
      ->(event) { plugin.filter(event) }
    else
      branches = item["branches"].map do |branch|
        [branch["if"] && condition(branch["if"]), branch["then"].map { |inner| compile(inner, environment) }]
      end
      lambda do |event|
        _, steps = branches.find { |test, _| test.nil? || test.call(event) }
        steps&.each { |step| step.call(event) }
      end
    end
  end

  def value(node)
    if node.is_a?(Hash) && node["field"]
      reference = node["field"].map { |part| "[#{part}]" }.join
      ->(event) { event.get(reference) }
    else
      ->(_event) { node }
    end
  end

  def condition(node)
    kind, *arguments = node.is_a?(Array) ? node : ["value", node]
    case kind
    when "and", "or"
      tests = arguments.first.map { |inner| condition(inner) }
      kind == "and" ? ->(event) { tests.all? { |test| test.call(event) } } : ->(event) { tests.any? { |test| test.call(event) } }
    when "not"
      test = condition(arguments.first)
      ->(event) { !test.call(event) }
    when "in", "not in"
      needle, haystack = arguments.map { |inner| value(inner) }
      lambda do |event|
        found, where = needle.call(event), haystack.call(event)
        inside = !found.nil? && (where.is_a?(Array) || where.is_a?(String)) && where.include?(found)
        kind == "in" ? inside : !inside
      end
    when "=="
      first, second = arguments.map { |inner| value(inner) }
      ->(event) { first.call(event) == second.call(event) }
    when "=~"
      text, pattern = value(arguments[0]), Regexp.new(arguments[1])
      ->(event) { text.call(event).is_a?(String) && pattern.match?(text.call(event)) }
    when "value"
      inner = value(arguments.first)
      ->(event) { ![nil, false].include?(inner.call(event)) }
    else raise "condition #{kind}"
    end
  end

  def run(event)
    @steps.each { |step| step.call(event) }
  end
end

if $PROGRAM_NAME == __FILE__
  pipeline = Pipeline.new(JSON.parse(File.read(ARGV[0])), ARGV[1])
  $stdin.each_line do |line|
    event = Event.new(JSON.parse(line))
    pipeline.run(event)
    puts JSON.generate(event.output)
  end
end
