// JSON Schema 2020-12 as our forms use it. Everything comes from packages, so a schema is data: nothing of it is run, and a
// pattern is judged by the gateway alone, as a browser's regular expressions can be made to run for hours.

export type Schema = { [keyword: string]: unknown };
export type Values = { [name: string]: unknown };

/** A text in the place of JSON that cannot be read; it is never sent. */
export class Unread {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Where an object holds the text for its attributes without a schema, while that cannot be read. */
export const REST = Symbol('rest');

export interface Fault {
  at: string[];
  text: string;
}

/** One schema in the place of a schema with references, rules and alternatives, for one value. */
export interface Flat extends Schema {
  title?: string;
  description?: string;
  type?: string;
  properties?: Record<string, Schema | boolean>;
  required?: string[];
  enum?: unknown[];
  examples?: unknown[];
  /** No value fits. */
  isImpossible?: boolean;
  /** Alternatives of which one is chosen. */
  choices?: Schema[];
  /** Names of attributes of which one set is expected; with `isOne` no other one besides. */
  groups?: { names: string[][]; isOne: boolean }[];
}

const targets = new WeakMap<object, Schema | boolean | undefined>();
const DEEPEST = 40;
/** A schema of a package may refer to itself in ways that double with each step: so much of it is read for one value, and filled in at once. */
const MOST_READ = 4000;
const MOST_FILLED = 3000;
/** And so much is read for all that is filled in at once. */
const MOST_READ_TO_FILL = 60_000;
let unreadYet = 0;
let unfilledYet = 0;
let unreadToFill = 0;
const KEPT = new Set(['$ref', '$defs', 'allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not', '$schema', '$id']);

/** Returns the schema once its references have their targets: each is within the nearest resource around it (`$id`). */
export function prepared(root: Schema): Schema {
  const walk = (node: unknown, resource: Schema, base: string) => {
    if (!isObject(node)) {
      if (Array.isArray(node)) for (const each of node) walk(each, resource, base);
      return;
    }
    const own = node !== root && typeof node['$id'] === 'string';
    const [home, name] = own ? [node, node['$id'] as string] : [resource, base];
    if (typeof node['$ref'] === 'string') targets.set(node, found(home, node['$ref'].startsWith(name) ? node['$ref'].slice(name.length) : node['$ref']));
    for (const each of Object.values(node)) walk(each, home, name);
  };
  walk(root, root, '');
  return root;
}

function found(resource: Schema, reference: string): Schema | boolean | undefined {
  if (reference !== '' && !reference.startsWith('#')) return undefined;
  let node: unknown = resource;
  for (const part of reference.slice(2).split('/').filter(Boolean)) {
    const name = unescaped(decode(part));
    node = (isObject(node) || Array.isArray(node)) && Object.hasOwn(node, name) ? (node as Values)[name] : undefined;
  }
  return isObject(node) || typeof node === 'boolean' ? (node as Schema) : undefined;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const unescaped = (part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~');

/** Returns the place that a JSON Pointer names. */
export function placeOf(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescaped);
}

export function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Unread);
}

export function equal(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Returns an object with another value of one attribute, in its place; undefined removes it. A name is only ever a name. */
export function withValue(values: unknown, name: string, value: unknown): Values {
  const old = isObject(values) ? values : {};
  const entries: [string, unknown][] = Object.entries(old);
  const at = entries.findIndex(([each]) => each === name);
  if (at < 0) entries.push([name, value]);
  else entries[at] = [name, value];
  const made: Values = Object.fromEntries(entries.filter(([, each]) => each !== undefined));
  return REST in old ? Object.assign(made, { [REST]: (old as { [REST]?: unknown })[REST] }) : made;
}

/** Returns a value with another one at a place in it. */
export function withAt(value: unknown, at: string[], inner: unknown): unknown {
  const [name, ...rest] = at;
  if (name === undefined) return inner;
  if (Array.isArray(value)) return value.map((each, index) => (String(index) === name ? withAt(each, rest, inner) : each));
  return withValue(value, name, withAt(own(value, name), rest, inner));
}

/** Returns the value at a place. */
export function valueAt(value: unknown, at: string[]): unknown {
  return at.reduce((node: unknown, name) => (Array.isArray(node) ? node[Number(name)] : own(node, name)), value);
}

export function own(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Returns what holds for a value. */
export function flat(schema: Schema | boolean | undefined, value: unknown, depth = 0): Flat {
  if (depth === 0) unreadYet = MOST_READ;
  if (schema === false) return { isImpossible: true };
  if (!isObject(schema) || depth > DEEPEST || --unreadYet < 0) return {};
  let made: Flat = Object.fromEntries(Object.entries(schema).filter(([name]) => !KEPT.has(name)));
  // The outer words are those of the place where a type is used.
  const { title, description } = made;
  if (Array.isArray(made['type'])) made.type = (made['type'] as string[]).find((each) => each !== 'null') as string;
  if (typeof schema['$ref'] === 'string') made = merged(flat(targets.get(schema), value, depth + 1), made);
  for (const each of list(schema['allOf'])) made = merged(made, flat(each, value, depth + 1));
  if (schema['if'] !== undefined) {
    const branch = fits(schema['if'] as Schema, value) ? schema['then'] : schema['else'];
    if (branch !== undefined) made = merged(made, flat(branch as Schema, value, depth + 1));
  }
  const never = schema['not'];
  if (never === true || (isObject(never) && !Object.keys(never).length)) made.isImpossible = true;
  for (const keyword of ['anyOf', 'oneOf'] as const) {
    const options = list(schema[keyword]);
    if (options.length) made = chosen(made, options, keyword === 'oneOf', value, depth);
  }
  if (title !== undefined) made.title = title;
  if (description !== undefined) made.description = description;
  return made;
}

function chosen(made: Flat, options: Schema[], isOne: boolean, value: unknown, depth: number): Flat {
  if (options.length === 1) return merged(made, flat(options[0], value, depth + 1));
  if (options.every((each) => Array.isArray(each['required']) && Object.keys(each).length === 1)) {
    return { ...made, groups: [...(made.groups ?? []), { names: options.map((each) => each['required'] as string[]), isOne }] };
  }
  const flats = options.map((each) => flat(each, value, depth + 1));
  // Several kinds of text are one text, for which there are proposals.
  if (flats.every((each) => each.type === 'string' || each.enum?.every((one) => typeof one === 'string'))) {
    return { ...made, type: 'string', examples: [...(made.examples ?? []), ...flats.flatMap((each) => each.enum ?? each.examples ?? [])] };
  }
  return { ...made, choices: options };
}

const list = (value: unknown): Schema[] => (Array.isArray(value) ? (value as Schema[]) : []);

function merged(one: Flat, other: Flat): Flat {
  const made: Flat = { ...one, ...other };
  if (one.isImpossible || other.isImpossible) made.isImpossible = true;
  if (one.properties && other.properties) {
    const both = { ...one.properties };
    for (const [name, each] of Object.entries(other.properties)) both[name] = both[name] === undefined ? each : together(both[name]!, each);
    made.properties = both;
  }
  for (const name of ['items', 'additionalProperties'] as const) {
    const [mine, theirs] = [one[name], other[name]] as (Schema | boolean | undefined)[];
    if (mine !== undefined && theirs !== undefined) made[name] = theirs === true ? mine : together(mine, theirs);
  }
  if (one.required && other.required) made.required = [...new Set([...one.required, ...other.required])];
  if (one.groups && other.groups) made.groups = [...one.groups, ...other.groups];
  if (one.enum && other.enum) {
    const titles = titlesOf(one.enum, one) ?? {};
    Object.assign(titles, titlesOf(other.enum, other));
    made.enum = one.enum.filter((each) => other.enum!.some((theirs) => equal(each, theirs)));
    made['x-enum-titles'] = made.enum.map((each) => titles[String(each)] ?? String(each));
  }
  for (const [name, best] of [['minimum', Math.max], ['maximum', Math.min], ['minLength', Math.max], ['maxLength', Math.min]] as const) {
    const [mine, theirs] = [one[name], other[name]];
    if (typeof mine === 'number' && typeof theirs === 'number') made[name] = best(mine, theirs);
  }
  return made;
}

function together(one: Schema | boolean, other: Schema | boolean): Schema | boolean {
  if (one === false || other === false) return false;
  if (one === true) return other;
  if (other === true) return one;
  return { allOf: [one, other] };
}

function titlesOf(values: unknown[], schema: Flat): Record<string, string> | null {
  const titles = schema['x-enum-titles'];
  return Array.isArray(titles) ? Object.fromEntries(values.map((each, at) => [String(each), String(titles[at] ?? each)])) : null;
}

/** Returns the values that can be chosen, with their names. */
export function optionsOf(schema: Flat): { value: unknown; title: string }[] {
  const titles = Array.isArray(schema['x-enum-titles']) ? (schema['x-enum-titles'] as unknown[]) : [];
  return (schema.enum ?? []).map((value, at) => {
    const title = String(titles[at] ?? value);
    return { value, title: title.toLowerCase() === String(value).toLowerCase() || typeof value !== 'string' || value.length > 30 ? title : `${title} (${value})` };
  });
}

const PLAIN = /^\^(?:\[[A-Za-z]{1,4}\]|[A-Za-z0-9:/_-])(?:\[[A-Za-z]{1,4}\]|[A-Za-z0-9:/_-]|\?(?!\?)){0,60}\$?$/;

/** Returns whether a value fits a condition of a form. */
function fits(schema: Schema | boolean | undefined, value: unknown, depth = 0): boolean {
  if (typeof schema === 'boolean') return schema;
  if (!isObject(schema) || depth > DEEPEST || --unreadYet < 0) return true;
  const inner = (each: Schema) => fits(each, value, depth + 1);
  if ('$ref' in schema && !fits(targets.get(schema), value, depth + 1)) return false;
  if ('const' in schema && !equal(schema['const'], value)) return false;
  if (Array.isArray(schema['enum']) && !schema['enum'].some((each) => equal(each, value))) return false;
  if (schema['type'] !== undefined && ![schema['type']].flat().some((each) => isOf(String(each), value))) return false;
  if (isObject(value)) {
    if (Array.isArray(schema['required']) && !schema['required'].every((name) => own(value, String(name)) !== undefined)) return false;
    const properties = isObject(schema['properties']) ? schema['properties'] : {};
    if (!Object.entries(properties).every(([name, each]) => own(value, name) === undefined || fits(each as Schema, value[name], depth + 1))) return false;
  }
  // A pattern without repetition takes no time; any other is the gateway's to judge, and its rule is not applied here.
  if (typeof value === 'string' && typeof schema['pattern'] === 'string' && !(PLAIN.test(schema['pattern']) && new RegExp(schema['pattern'], 'u').test(value))) return false;
  if (typeof value === 'number') {
    if (typeof schema['minimum'] === 'number' && value < schema['minimum']) return false;
    if (typeof schema['maximum'] === 'number' && value > schema['maximum']) return false;
  }
  if (schema['not'] !== undefined && inner(schema['not'] as Schema)) return false;
  if (!list(schema['allOf']).every(inner)) return false;
  if (Array.isArray(schema['anyOf']) && !list(schema['anyOf']).some(inner)) return false;
  if (Array.isArray(schema['oneOf']) && list(schema['oneOf']).filter(inner).length !== 1) return false;
  if (schema['if'] === undefined) return true;
  return fits((inner(schema['if'] as Schema) ? schema['then'] : schema['else']) as Schema | undefined, value, depth + 1);
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'object') return isObject(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'null') return value === null;
  return typeof value === type;
}

const byReference = (schema: unknown): boolean => isObject(schema) && ('$ref' in schema || list(schema['allOf']).some(byReference));

/** Returns a value with the defaults where it says nothing. An optional part that is a type of its own is left out. */
export function filled(schema: Schema | boolean | undefined, value: unknown, isRequired: boolean, depth = 0): unknown {
  if (depth === 0) [unfilledYet, unreadToFill] = [MOST_FILLED, MOST_READ_TO_FILL];
  if (depth > 12 || --unfilledYet < 0 || unreadToFill < 0) return value;
  let rules = readToFill(schema, value);
  if (rules.isImpossible) return value;
  if (value === undefined && 'default' in rules) value = structuredClone(rules['default']);
  if (value === undefined && 'const' in rules && isRequired) return structuredClone(rules['const']);
  if (!rules.properties || (value === undefined && !isRequired && byReference(schema)) || (value !== undefined && !isObject(value))) return value;
  let made: Values = isObject(value) ? value : {};
  // Twice: rules depend on what was filled in.
  for (let round = 0; round < 2; round++) {
    rules = readToFill(schema, made);
    for (const [name, each] of Object.entries(rules.properties ?? {})) {
      const inner = filled(each, own(made, name), rules.required?.includes(name) ?? false, depth + 1);
      if (inner !== own(made, name)) made = withValue(made, name, inner);
    }
  }
  return Object.keys(made).length || isRequired ? made : undefined;
}

function readToFill(schema: Schema | boolean | undefined, value: unknown): Flat {
  const rules = flat(schema, value);
  unreadToFill -= MOST_READ - unreadYet;
  return rules;
}

/** Returns an object after a change of one attribute, on which the defaults and the choice of others may depend. */
export function changed(schema: Schema | boolean | undefined, old: unknown, name: string, value: unknown, hasDefaults: boolean): Values {
  const before = flat(schema, old);
  let made = withValue(old, name, value);
  const after = flat(schema, made);
  for (const [each, rules] of Object.entries(before.properties ?? {})) {
    if (each === name || own(made, each) === undefined) continue;
    const next = after.properties?.[each];
    if (equal(rules, next)) continue;
    const [was, now] = [flat(rules, own(made, each)), flat(next, own(made, each))];
    const isDefault = 'default' in was && equal(was['default'], own(made, each));
    const isOutside = now.enum !== undefined && !now.enum.some((one) => equal(one, own(made, each)));
    if (next === undefined || now.isImpossible || isOutside || (isDefault && !equal(was['default'], now['default']))) made = withValue(made, each, undefined);
  }
  if (!hasDefaults || equal(before.properties, after.properties)) return made;
  return filled(schema, made, true) as Values;
}

/** Returns what is wrong in a value, as far as a page can say; the gateway says the rest. */
export function faults(schema: Schema | boolean | undefined, value: unknown, at: string[], isRequired: boolean, depth = 0): Fault[] {
  const rules = flat(schema, value);
  const wrong = (text: string): Fault[] => [{ at, text }];
  if (value instanceof Unread) return wrong('This is not JSON.');
  if (value === undefined) return isRequired ? wrong('A value is expected here.') : [];
  if (rules.isImpossible) return wrong('Not possible together with the other values.');
  if (depth > 20) return [];
  if (isObject(value) && REST in value) return [{ at: [...at, '…'], text: 'This is not JSON.' }];
  if (rules.choices) {
    const each = rules.choices.map((one) => faults(one, value, at, isRequired, depth + 1)).sort((one, other) => one.length - other.length);
    return each[0] ?? [];
  }
  if (isObject(value)) return ofObject(rules, value, at, depth);
  if (Array.isArray(value)) {
    const [least, most] = [rules['minItems'], rules['maxItems']];
    if (typeof least === 'number' && value.length < least) return wrong(`At least ${least} expected.`);
    if (typeof most === 'number' && value.length > most) return wrong(`At most ${most} expected.`);
    return value.flatMap((each, index) => faults(rules['items'] as Schema, each, [...at, String(index)], true, depth + 1));
  }
  if (rules.enum && !rules.enum.some((each) => equal(each, value))) return wrong('One of the values of the list is expected.');
  if (rules.type === 'integer' && !Number.isInteger(value)) return wrong('A whole number is expected.');
  if (rules.type === 'number' && typeof value !== 'number') return wrong('A number is expected.');
  if (typeof value === 'number') return bounds(rules, value).flatMap(wrong);
  if (typeof value === 'string') {
    const length = [...value].length;
    const [least, most] = [rules['minLength'], rules['maxLength']];
    if (typeof least === 'number' && length < least) return wrong(`At least ${least} characters expected.`);
    if (typeof most === 'number' && length > most) return wrong(`At most ${most} characters expected.`);
  }
  return [];
}

function bounds(rules: Flat, value: number): string[] {
  const [least, most, above, below] = [rules['minimum'], rules['maximum'], rules['exclusiveMinimum'], rules['exclusiveMaximum']];
  if (typeof least === 'number' && value < least) return [`At least ${least} expected.`];
  if (typeof most === 'number' && value > most) return [`At most ${most} expected.`];
  if (typeof above === 'number' && value <= above) return [`More than ${above} expected.`];
  if (typeof below === 'number' && value >= below) return [`Less than ${below} expected.`];
  return [];
}

/** More ways than these to fill in a part are chosen from a list. */
export const FEW_WAYS = 2;

function ofObject(rules: Flat, value: Values, at: string[], depth: number): Fault[] {
  const properties = rules.properties ?? {};
  const made: Fault[] = [];
  for (const [name, each] of Object.entries(properties)) {
    if (each !== false) made.push(...faults(each, own(value, name), [...at, name], rules.required?.includes(name) ?? false, depth + 1));
  }
  for (const name of rules.required ?? []) if (!Object.hasOwn(properties, name) && own(value, name) === undefined) made.push({ at: [...at, name], text: 'A value is expected here.' });
  const others = rules['additionalProperties'];
  if (isObject(others)) for (const name of Object.keys(value)) if (!Object.hasOwn(properties, name)) made.push(...faults(others, value[name], [...at, name], true, depth + 1));
  for (const { names, isOne } of rules.groups ?? []) {
    const given = names.filter((each) => each.every((name) => own(value, name) !== undefined));
    const words = names.map((each) => each.map((name) => titleOf(properties[name], name)).join(' and ')).join('; or ');
    if (!given.length) made.push({ at, text: names.length > FEW_WAYS ? 'Choose a way, and give all that it needs.' : `One of these is expected: ${words}.` });
    else if (isOne && given.length > 1) made.push({ at, text: `Only one of these is expected: ${words}.` });
  }
  const dependent = isObject(rules['dependentRequired']) ? rules['dependentRequired'] : {};
  for (const [name, needed] of Object.entries(dependent)) {
    if (own(value, name) === undefined || !Array.isArray(needed)) continue;
    for (const each of needed) if (own(value, String(each)) === undefined) made.push({ at: [...at, String(each)], text: `It is expected together with ${titleOf(properties[name], name)}.` });
  }
  return made;
}

export function titleOf(schema: Schema | boolean | undefined, name: string): string {
  const title = flat(schema, undefined).title;
  return typeof title === 'string' && title ? title : name;
}

/** Returns what is sent: without attributes that the other values exclude. */
export function sendable(schema: Schema | boolean | undefined, value: unknown, depth = 0): unknown {
  const rules = flat(schema, value);
  if (Array.isArray(value)) return value.map((each) => sendable(rules['items'] as Schema, each, depth + 1));
  if (!isObject(value) || !rules.properties || depth > DEEPEST) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !Object.hasOwn(rules.properties!, name) || !flat(rules.properties![name], value[name]).isImpossible)
      .map(([name, each]) => [name, Object.hasOwn(rules.properties!, name) ? sendable(rules.properties![name], each, depth + 1) : each]),
  );
}

// Wider than the gateway's own rule: what is left out here is only typed again.
const SECRET = /pass|pwd|pswd|\bpw\b|phrase|secret|token|credential|kubeconfig|private|key|auth|cert|psk|otp|puk|login/i;
const LOGIN_IN_URL = /\/\/[^/\s]*@/;

/** Returns what of a value may be stored: no secret, by its schema, its name or as a login in a URL. */
export function storable(schema: Schema | boolean | undefined, value: unknown, depth = 0): unknown {
  const rules = flat(schema, value);
  if (value instanceof Unread || depth > DEEPEST || rules['writeOnly'] === true || rules['format'] === 'password') return undefined;
  if (typeof value === 'string') return LOGIN_IN_URL.test(value) || value.includes('PRIVATE KEY') ? undefined : value;
  if (Array.isArray(value)) {
    const items = value.map((each) => storable(rules['items'] as Schema, each, depth + 1));
    return items.includes(undefined) ? items.filter((each) => each !== undefined) : items;
  }
  if (!isObject(value)) return value;
  const kept: [string, unknown][] = [];
  // A request itself can name further secrets.
  const named = Array.isArray(value['x_secret_names']) ? value['x_secret_names'] : [];
  for (const [name, each] of Object.entries(value)) {
    if (named.includes(name)) continue;
    const known = Object.hasOwn(rules.properties ?? {}, name) ? rules.properties![name] : undefined;
    // A part with attributes of its own is judged by those.
    const inner = known === undefined && SECRET.test(name) && !isObject(rules['additionalProperties']) ? undefined : storable(known ?? (rules['additionalProperties'] as Schema), each, depth + 1);
    if (inner !== undefined) kept.push([name, inner]);
  }
  return Object.fromEntries(kept);
}

/**
 * Returns the place that an error of the gateway names: a JSON Pointer, or names with slashes or dots between them, of which a name may
 * have dots itself. Of several readings, the one with names that the value has.
 */
export function placeNamed(name: string, value: unknown): string[] {
  if (name.startsWith('/')) return placeOf(name);
  const between = name.includes('/') ? '/' : '.';
  const parts = name.replaceAll(/\[([0-9]+)\]/g, `${between}$1`).split(between).filter(Boolean).slice(0, 60);
  const at: string[] = [];
  let node = value;
  while (parts.length) {
    let length = 1;
    if (isObject(node)) for (let each = Math.min(parts.length, 8); each > 1; each--) if (Object.hasOwn(node, parts.slice(0, each).join('.'))) { length = each; break; }
    const part = parts.splice(0, length).join('.');
    at.push(part);
    node = Array.isArray(node) ? node[Number(part)] : own(node, part);
  }
  return at;
}
