// What events say of operations, drawn at once: the state that the gateway has is read after them, which for many events, or a
// large operation, takes longer than a person should wait. What a view has already is never replaced by something older.
import type { Schemas } from './api';
import type { Happened } from './live.svelte';

type Operation = Schemas['OperationView'];
type List = Schemas['OperationList'];
type Step = Operation['steps'][number];
type Task = Operation['tasks'][number];
type Head = { state: string; stateEnteredTime: string };

interface News {
  time: string;
  operationid: string;
  stepid: string;
  attempt: number;
  // Its attributes are those of docs/notifications.md; each is looked at before it is used.
  data: Record<string, unknown>;
}

const STATES: Record<string, Step['state']> = { started: 'asked', finished: 'done', failed: 'failed', undoing: 'undoing', undone: 'undone' };
// Within one attempt a step goes this way.
const ORDER: Record<Step['state'], number> = { waiting: 0, skipped: 0, asked: 1, undoing: 1, done: 2, failed: 2, undone: 2 };
const TASK_STATES = new Set<unknown>(['started', 'progressed', 'finished', 'failed', 'skipped', 'cancelled']);
const ENDED = new Set(['COMPLETED', 'FAILED', 'ROLLED_BACK']);

function read(event: Happened): News | null {
  try {
    return JSON.parse(event.text) as News;
  } catch {
    return null;
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** Returns what a state means for the head of an operation; null if it has that one or a later one. */
function entered(head: Head, news: News): (Head & Pick<Operation, 'cause' | 'next' | 'estimate' | 'endTime'>) | null {
  const [state, since] = [text(news.data.state), text(news.data.state_entered_time)];
  if (!state || state === head.state || !(Date.parse(since) >= Date.parse(head.stateEnteredTime))) return null;
  // Cause and tasks are those of the state before.
  return { state, stateEnteredTime: since, cause: undefined, next: undefined, estimate: undefined, ...(ENDED.has(state) ? { endTime: since } : {}) };
}

/** Returns the view of an operation with what has happened to it. */
export function operationWith(view: Operation, events: Happened[]): Operation {
  const changed = { ...view, steps: [...view.steps], nodes: [...view.nodes], tasks: [...view.tasks] };
  const steps = new Map(view.steps.map((step, at) => [step.name, at]));
  const nodes = new Map(view.nodes.map((node, at) => [node.name, at]));
  const copied = new Set<string>(['']);
  for (const event of events) {
    const news = read(event);
    if (news?.operationid !== view.id) continue;
    if (event.kind === 'lcm.operation.changed') Object.assign(changed, entered(changed, news));
    else if (event.kind === 'lcm.step.changed') {
      const at = steps.get(text(news.data.step));
      if (at !== undefined) changed.steps[at] = stepWith(changed.steps[at]!, news);
    } else if (event.kind === 'mgmt.task.progressed') {
      const name = text(news.data.node);
      let at = nodes.get(name);
      if (name && at === undefined) {
        at = changed.nodes.push({ name, tasks: [] }) - 1;
        nodes.set(name, at);
        copied.add(name);
      }
      if (!copied.has(name)) {
        changed.nodes[at!] = { name, tasks: [...changed.nodes[at!]!.tasks] };
        copied.add(name);
      }
      taskInto(name ? changed.nodes[at!]!.tasks : changed.tasks, news);
    }
  }
  return changed;
}

function stepWith(step: Step, news: News): Step {
  const [state, attempt] = [STATES[text(news.data.state)], number(news.data.attempt) ?? 1];
  if (!state || attempt < step.attempt || (attempt === step.attempt && ORDER[state] <= ORDER[step.state])) return step;
  const isOver = ORDER[state] === 2;
  return { ...step, state, attempt, ...(isOver ? { endedAt: news.time } : { startedAt: news.time, endedAt: undefined, error: undefined }) };
}

function taskInto(tasks: Task[], news: News): void {
  const [name, state] = [text(news.data.task), news.data.state];
  if (!name || !TASK_STATES.has(state)) return;
  const at = tasks.findIndex((each) => each.task === name && each.step === news.stepid);
  const known = at < 0 ? undefined : tasks[at]!;
  if (known && Date.parse(known.updatedAt) > Date.parse(news.time)) return;
  const task: Task = {
    step: news.stepid,
    task: name,
    attempt: news.attempt,
    state: state as Task['state'],
    message: text(news.data.message),
    updatedAt: news.time,
    startedAt: state === 'started' ? news.time : known?.startedAt,
    done: number(news.data.done),
    total: number(news.data.total),
    durationS: number(news.data.duration_s),
  };
  if (known) tasks[at] = task;
  else tasks.push(task);
}

/** Returns a page of operations with what has happened to them; `isFirst`: operations that begin belong at its top. */
export function listWith(list: List, events: Happened[], isFirst: boolean): List {
  const items = new Map(list.items.map((item) => [item.id, item]));
  const begun: List['items'] = [];
  for (const event of events) {
    const news = read(event);
    const item = news ? items.get(news.operationid) : undefined;
    if (!news) continue;
    if (event.kind === 'lcm.operation.changed') {
      if (item) items.set(item.id, { ...item, ...entered(item, news) });
      else if (isFirst && news.data.is_first === true) {
        const made = summary(news);
        items.set(made.id, made);
        begun.unshift(made);
      }
    } else if (event.kind === 'lcm.step.changed' && item) items.set(item.id, counted(item, news));
  }
  return { ...list, items: [...begun, ...list.items].map((item) => items.get(item.id)!) };
}

type Summary = List['items'][number];

function summary({ operationid, data, time }: News): Summary {
  return {
    id: operationid,
    vnfInstanceId: text(data.vnf_instance_id),
    vnfInstanceName: text(data.vnf_instance_name),
    operation: text(data.operation),
    state: text(data.state),
    startTime: text(data.start_time) || time,
    stateEnteredTime: text(data.state_entered_time) || time,
    steps: { done: 0, total: 0, current: [] },
    warningCount: 0,
    _links: {},
  };
}

function counted(item: Summary, { data }: News): Summary {
  const [done, total, title, state] = [number(data.done), number(data.of), text(data.title), text(data.state)];
  // Forwards the number of steps that are done grows; a late event has a smaller one.
  if (done === undefined || total === undefined || (done < item.steps.done && state !== 'undoing' && state !== 'undone')) return item;
  const others = item.steps.current.filter((each) => each !== title);
  const isRunning = state === 'started' || state === 'undoing';
  return { ...item, steps: { done, total, current: (isRunning ? [...others, title] : others).slice(0, 10) } };
}
