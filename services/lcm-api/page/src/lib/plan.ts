// What a plan's graph shows: equal steps as one box, and each that has failed, or is chosen, by itself.
import type { Schemas } from './api';
import { ranks, type Box } from './layers.ts';

type Step = Schemas['OperationView']['steps'][number];

export interface Shown extends Box {
  title: string;
  state: string;
  /** What is shown as text when the pointer rests on it. */
  long: string;
  /** The steps of a group; null for a step by itself. */
  steps: Step[] | null;
}

/** As in the tree of an instance, fewer equal ones are shown one by one. */
const FEWEST = 11;
const RUNNING = new Set(['asked', 'undoing']);

/** Returns the boxes of a plan; `isOpen`: each step has its own. */
export function boxesOf(steps: Step[], chosen: string, isOpen: boolean): Shown[] {
  const alone = (step: Step): Shown => ({ key: step.name, after: step.after, title: step.title, state: step.state, long: step.title, steps: null });
  if (isOpen || steps.length < FEWEST) return steps.map(alone);
  const rankOf = ranks(steps.map((step) => ({ key: step.name, after: step.after })));
  const alike = new Map<string, Step[]>();
  for (const step of steps) {
    if (step.state === 'failed' || step.name === chosen) continue;
    const key = `${rankOf.get(step.name)} ${step.kind}`;
    const group = alike.get(key);
    if (group) group.push(step);
    else alike.set(key, [step]);
  }
  const boxOf = new Map(steps.map((step) => [step.name, step.name]));
  const groups = new Map<string, Step[]>();
  for (const [key, group] of alike) {
    if (group.length < FEWEST) continue;
    groups.set(`group ${key}`, group);
    for (const step of group) boxOf.set(step.name, `group ${key}`);
  }
  const shown = new Map<string, Shown>();
  for (const step of steps) {
    const key = boxOf.get(step.name)!;
    const group = groups.get(key);
    const box = shown.get(key) ?? (group ? together(key, group) : alone(step));
    const after = shown.has(key) ? (box.after as Set<string>) : new Set<string>();
    for (const before of step.after) if (boxOf.has(before)) after.add(boxOf.get(before)!);
    shown.set(key, { ...box, after });
  }
  return [...shown.values()];
}

function together(key: string, steps: Step[]): Shown {
  const count = (is: (step: Step) => boolean) => steps.filter(is).length;
  const [done, running] = [count((step) => step.state === 'done'), count((step) => RUNNING.has(step.state))];
  const first = steps[0]!.state;
  const state = running ? 'asked' : steps.every((step) => step.state === first) ? first : 'waiting';
  const title = `${steps.length} × ${common(steps.map((step) => step.title))}`;
  return { key, after: new Set<string>(), title, state, long: `${title}: ${done} done, ${running} running`, steps };
}

/** Returns what texts have in common at their beginning, to the end of a word. */
function common(texts: string[]): string {
  const first = texts[0]!;
  let length = first.length;
  for (const text of texts) while (!text.startsWith(first.slice(0, length))) length--;
  if (length === first.length) return first;
  const start = first.slice(0, length);
  const end = start.lastIndexOf(' ');
  return `${(end > 0 ? start.slice(0, end) : start).trim()} …`;
}
