// The rules of the page that need no browser, by Node's own test runner: `page.sh check` runs them. Types of the sources are stripped by Node.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placed, ranks, HEIGHT } from '../src/lib/layers.ts';
import { changesOf } from '../src/lib/changes.ts';
import { courseOf, figure, numbersOf } from '../src/lib/figures.ts';
import { listWith, operationWith } from '../src/lib/news.ts';
import { boxesOf } from '../src/lib/plan.ts';
import { rowsOf } from '../src/lib/rows.ts';
import { changed, faults, filled, placeNamed, prepared, sendable, storable } from '../src/lib/schema.ts';

const T = (second) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;
const step = (name, after = [], state = 'done', more = {}) => ({ name, kind: 'k', title: `Step ${name}`, state, attempt: 1, after, timeoutS: 1, ...more });
const event = (kind, data, more = {}) => ({ kind, text: JSON.stringify({ time: T(9), operationid: 'o', stepid: 's', attempt: 1, data, ...more }) });
const view = (more = {}) => ({ id: 'o', state: 'PROCESSING', stateEnteredTime: T(5), cause: { text: 'c' }, next: [], estimate: {}, steps: [], nodes: [], tasks: [], ...more });

test('news: the head takes a later state, and never an earlier one', () => {
  const entered = (state, at) => operationWith(view(), [event('lcm.operation.changed', { state, state_entered_time: at })]);
  const ended = entered('COMPLETED', T(6));
  assert.deepEqual([ended.state, ended.endTime, ended.cause, ended.next], ['COMPLETED', T(6), undefined, undefined]);
  assert.equal(entered('FAILED_TEMP', T(6)).endTime, undefined);
  for (const at of [T(4), 'soon', '']) assert.equal(entered('STARTING', at).state, 'PROCESSING', at);
  assert.equal(entered('PROCESSING', T(6)).stateEnteredTime, T(5));
  const other = event('lcm.operation.changed', { state: 'FAILED', state_entered_time: T(6) }, { operationid: 'other' });
  assert.equal(operationWith(view(), [other, { kind: 'lcm.operation.changed', text: '{' }]).state, 'PROCESSING');
});

test('news: a step goes forwards within an attempt, and begins again with the next one', () => {
  const start = view({ steps: [step('s', [], 'asked', { attempt: 2, startedAt: T(1) })] });
  const after = (...changes) => operationWith(start, changes.map(([state, attempt]) => event('lcm.step.changed', { step: 's', state, attempt }))).steps[0];
  assert.deepEqual([after(['finished', 2]).state, after(['finished', 2]).endedAt], ['done', T(9)]);
  assert.equal(after(['finished', 1]).state, 'asked');
  assert.equal(after(['finished', 2], ['started', 2]).state, 'done');
  const again = after(['failed', 2], ['started', 3]);
  assert.deepEqual([again.state, again.attempt, again.endedAt, again.error], ['asked', 3, undefined, undefined]);
  assert.equal(after(['exploded', 9]).state, 'asked');
  // The view that was given stays as it is.
  assert.equal(start.steps[0].state, 'asked');
});

test('news: tasks of nodes that are new are added, and an older event changes none', () => {
  const task = (state, time, node = 'n') => event('mgmt.task.progressed', { node, task: 't', state, message: state }, { time });
  const made = operationWith(view(), [task('started', T(1)), task('finished', T(3)), task('progressed', T(2)), task('started', T(1), ''), task('odd', T(9))]);
  assert.deepEqual(made.nodes.map((node) => [node.name, ...node.tasks.map((each) => [each.state, each.startedAt])]), [['n', ['finished', T(1)]]]);
  assert.equal(made.tasks.length, 1);
});

test('news: a list counts steps forwards, and has operations that begin at its top', () => {
  const item = { ...view(), steps: { done: 2, total: 4, current: ['a'] } };
  const counted = (done, state) => listWith({ items: [item] }, [event('lcm.step.changed', { done, of: 4, title: 'b', state })], true).items[0].steps;
  assert.deepEqual(counted(2, 'started'), { done: 2, total: 4, current: ['a', 'b'] });
  assert.equal(counted(1, 'finished').done, 2);
  assert.equal(counted(1, 'undone').done, 1);
  const begun = event('lcm.operation.changed', { is_first: true, state: 'STARTING', operation: 'HEAL' }, { operationid: 'new' });
  assert.deepEqual(listWith({ items: [item] }, [begun], true).items.map((each) => each.id), ['new', 'o']);
  assert.deepEqual(listWith({ items: [item] }, [begun], false).items.map((each) => each.id), ['o']);
});

test('layers: the longest way counts, and a cycle ends', () => {
  const box = (key, ...after) => ({ key, after });
  assert.deepEqual([...ranks([box('a'), box('b', 'a'), box('c', 'a', 'b', 'c', 'gone')]).values()], [0, 1, 2]);
  assert.deepEqual([...ranks([box('a', 'b'), box('b', 'a')]).values()], [0, 0]);
  const { corners, lines, width } = placed([box('a'), box('b', 'a'), box('c', 'b', 'a'), ...Array.from({ length: 20 }, (_, at) => box(`x${at}`, 'a'))]);
  assert.equal(lines.length, 23);
  assert.equal(lines.find((line) => line.from === 'a' && line.to === 'c').points.length, 4, 'a line over a column has a place in it');
  const columns = Map.groupBy(corners.values(), ({ x }) => x);
  for (const column of columns.values()) {
    const tops = column.map(({ y }) => y).sort((one, other) => one - other);
    for (let at = 1; at < tops.length; at++) assert.ok(tops[at] - tops[at - 1] >= HEIGHT, 'boxes do not overlap');
  }
  assert.ok([...corners.values()].every(({ x, y }) => x >= 0 && y >= 0 && x < width));
  assert.deepEqual(placed([]), { width: 0, height: 0, corners: new Map(), lines: [] });
});

test('layers: a plan of a thousand steps is placed in a moment', () => {
  const boxes = Array.from({ length: 1000 }, (_, at) => ({ key: `${at}`, after: at < 200 ? [] : [`${at - 200}`, `${(at * 7) % 200}`] }));
  const began = performance.now();
  assert.equal(placed(boxes).corners.size, 1000);
  assert.ok(performance.now() - began < 5000);
});

test('plan: equal steps are one box; one that has failed or is chosen is by itself', () => {
  const many = Array.from({ length: 14 }, (_, at) => step(`m${at}`, ['first'], at === 3 ? 'failed' : at === 5 ? 'asked' : 'done', { title: `Join worker${at}` }));
  const steps = [step('first'), ...many, step('last', many.map((each) => each.name), 'waiting', { kind: 'end' })];
  const boxes = boxesOf(steps, 'm7', false);
  assert.deepEqual(boxes.map((box) => [box.title, box.state]), [
    ['Step first', 'done'], ['12 × Join …', 'asked'], ['Join worker3', 'failed'], ['Join worker7', 'done'], ['Step last', 'waiting'],
  ]);
  assert.equal(boxes[1].long, '12 × Join …: 11 done, 1 running');
  assert.deepEqual([...boxes[4].after], [boxes[1].key, 'm3', 'm7'], 'a group is named once');
  assert.equal(boxesOf(steps, '', true).length, 16);
  assert.equal(boxesOf(steps.slice(0, 10), '', false).length, 10);
});

test('rows: tasks are below their machine, by their start; what has failed is the state of the machine', () => {
  const task = (name, state, started, updated) => ({ step: 's', task: name, attempt: 1, state, message: '', startedAt: started, updatedAt: updated });
  const nodes = [
    { name: 'w1', tasks: [task('b', 'finished', T(2), T(4)), task('a', 'failed', T(1), T(3))] },
    { name: 'w2', tasks: [task('a', 'finished', T(1), T(2)), task('b', 'progressed', null, T(3))] },
    { name: 'w3', tasks: [] },
  ];
  const rows = rowsOf(view({ steps: [step('s', [], 'asked', { startedAt: T(0) })], nodes, tasks: [task('own', 'started', T(1), T(1))] }));
  assert.deepEqual(rows.map((row) => [row.kind, row.node, row.title, row.state, row.start, row.end]), [
    ['step', '', 'Step s', 'asked', T(0), null],
    ['task', '', 'own', 'started', T(1), null],
    ['node', 'w1', 'w1', 'failed', T(1), T(4)],
    ['task', 'w1', 'a', 'failed', T(1), T(3)],
    ['task', 'w1', 'b', 'finished', T(2), T(4)],
    ['node', 'w2', 'w2', 'progressed', T(1), null],
    ['task', 'w2', 'a', 'finished', T(1), T(2)],
    ['task', 'w2', 'b', 'progressed', T(3), null],
  ]);
  assert.equal(new Set(rows.map((row) => row.key)).size, rows.length);
});

// As the form of an instantiation: the flavour decides what else there is.
const FORM = prepared({
  type: 'object',
  required: ['flavourId'],
  properties: { flavourId: { enum: ['simple', 'complex'], default: 'simple' }, additionalParams: { $ref: '#/$defs/params' }, note: { type: 'string', maxLength: 4 } },
  $defs: { params: { type: 'object', properties: { count: { type: 'integer', minimum: 1, maximum: 5 }, word: { type: 'string', writeOnly: true } } } },
  allOf: [
    {
      if: { properties: { flavourId: { const: 'complex' } }, required: ['flavourId'] },
      then: { required: ['levelId'], properties: { levelId: { enum: ['big', 'huge'], default: 'big' }, additionalParams: { properties: { count: { maximum: 3 } } } } },
      else: { properties: { levelId: false } },
    },
  ],
});
const wrong = (schema, value) => faults(schema, value, [], true).map(({ at, text }) => `/${at.join('/')}: ${text}`);

test('schema: rules by allOf and if decide on other attributes', () => {
  assert.deepEqual(filled(FORM, undefined, true), { flavourId: 'simple' });
  const complex = changed(FORM, { flavourId: 'simple' }, 'flavourId', 'complex', true);
  assert.deepEqual(complex, { flavourId: 'complex', levelId: 'big' });
  assert.deepEqual(changed(FORM, complex, 'flavourId', 'simple', true), { flavourId: 'simple' }, 'what is impossible now is removed');
  assert.deepEqual(wrong(FORM, { flavourId: 'complex' }), ['/levelId: A value is expected here.']);
  assert.deepEqual(sendable(FORM, { flavourId: 'simple', levelId: 'big', other: 1 }), { flavourId: 'simple', other: 1 });
});

test('schema: bounds of both rules hold, at their edges', () => {
  const count = (flavourId, value) => wrong(FORM, { flavourId, ...(flavourId === 'complex' ? { levelId: 'big' } : {}), additionalParams: { count: value } });
  assert.deepEqual([count('simple', 1), count('simple', 5), count('complex', 3)], [[], [], []]);
  assert.deepEqual(count('simple', 6), ['/additionalParams/count: At most 5 expected.']);
  assert.deepEqual(count('complex', 4), ['/additionalParams/count: At most 3 expected.']);
  assert.deepEqual(count('simple', 0), ['/additionalParams/count: At least 1 expected.']);
  assert.deepEqual(count('simple', 1.5), ['/additionalParams/count: A whole number is expected.']);
  assert.deepEqual(wrong(FORM, { flavourId: 'simple', note: '💩💩💩💩' }), [], 'characters are counted, not units of UTF-16');
  assert.deepEqual(wrong({ type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 }, 1), ['/: Less than 1 expected.']);
  assert.deepEqual(wrong({ type: 'array', minItems: 1, items: { enum: ['a'] } }, []), ['/: At least 1 expected.']);
  assert.deepEqual(wrong({ type: 'array', items: { enum: ['a'] } }, ['a', 'b']), ['/1: One of the values of the list is expected.']);
  assert.deepEqual(wrong({ properties: { a: {}, b: {} }, anyOf: [{ required: ['a'] }, { required: ['b'] }] }, {}), ['/: One of these is expected: a; or b.']);
});

test('schema: one that refers to itself, or has names of JavaScript, ends and changes nothing else', () => {
  const twice = { type: 'object', properties: { a: { $ref: '#' }, b: { $ref: '#' }, c: { default: 1 } }, required: ['a', 'b'] };
  twice.allOf = [{ properties: { a: { $ref: '#' } } }, { properties: { b: { $ref: '#' } } }];
  const began = performance.now();
  filled(prepared(twice), {}, true);
  faults(prepared(twice), { a: {}, b: {} }, [], true);
  assert.ok(performance.now() - began < 5000);
  const proto = prepared(JSON.parse('{"properties": {"__proto__": {"default": {"polluted": 1}}, "constructor": {"type": "string"}}}'));
  filled(proto, {}, true);
  assert.equal({}.polluted, undefined);
  assert.deepEqual(wrong(proto, {}), []);
  // A pattern that a browser would try for hours is not run.
  const slow = { if: { properties: { x: { pattern: '^(a+)+$' } } }, then: { required: ['y'] }, properties: { x: {} } };
  assert.deepEqual(wrong(slow, { x: `${'a'.repeat(60)}!` }), []);
});

test('schema: drafts have no secrets, by schema, name, login or key', () => {
  const value = { note: 'n', additionalParams: { count: 2, word: 'w' }, password: 'p', url: 'https://a:b@c/', pem: 'BEGIN PRIVATE KEY', x_secret_names: ['pin'], pin: '1' };
  const schema = { ...FORM, properties: { ...FORM.properties, url: {}, pem: {}, x_secret_names: {} } };
  assert.deepEqual(storable(schema, value), { note: 'n', additionalParams: { count: 2 }, x_secret_names: ['pin'] });
});

test('schema: the place of an error is found by pointer, points or slashes', () => {
  const value = { a: [{ 'b.c': 1 }], 'x/y': 1 };
  assert.deepEqual(placeNamed('/a/0/b.c', value), ['a', '0', 'b.c']);
  assert.deepEqual(placeNamed('a[0].b.c', value), ['a', '0', 'b.c']);
  assert.deepEqual(placeNamed('/x~1y', value), ['x/y']);
});

test('changes: what is different between two readings, each as deep as both have objects', () => {
  const at = (was, is) => changesOf(was, is).map((each) => [each.at.join('.'), each.was, each.is]);
  assert.deepEqual(at({ a: 1, b: { c: [1], d: 2 } }, { a: 1, b: { c: [1], d: 2 } }), []);
  assert.deepEqual(at({ a: 1, b: { c: 'x' } }, { b: { c: 'y', e: null } }), [['a', 1, undefined], ['b.c', 'x', 'y'], ['b.e', undefined, null]]);
  assert.deepEqual(at({ a: { b: 1 } }, { a: [1] }), [['a', { b: 1 }, [1]]]);
  assert.deepEqual(at({}, JSON.parse('{"__proto__": 1}')), [['__proto__', undefined, 1]]);
});

test('figures: bounds and mean of the values of a report, and their course within its box', () => {
  const values = (...numbers) => numbers.map((value, at) => ({ timeStamp: T(at), value }));
  assert.deepEqual(numbersOf(values(2, 8, 5)), { count: 3, least: 2, mean: 5, greatest: 8 });
  assert.deepEqual(numbersOf([]), { count: 0 });
  assert.equal(courseOf(values(2, 8, 5)), '0.0,20.0 50.0,0.0 100.0,10.0');
  assert.equal(courseOf(values(3, 3)), '0.0,10.0 100.0,10.0');
  assert.equal(courseOf(values(3)), '0.0,10.0 100,10');
  assert.equal(courseOf([]), '');
  assert.deepEqual([figure(1 / 3), figure(1e21), figure(undefined), figure(Infinity)], ['0.333333', '1e+21', '', '']);
});
