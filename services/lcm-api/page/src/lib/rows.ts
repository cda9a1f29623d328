// The rows of an operation's timeline: its steps, and below them each machine with its tasks.
import type { Schemas } from './api';

type Operation = Schemas['OperationView'];

export interface Row {
  key: string;
  /** A step, a machine, or a task on one. */
  kind: 'step' | 'node' | 'task';
  title: string;
  state: string;
  start: string | null;
  end: string | null;
  node: string;
  step?: Operation['steps'][number];
  task?: Operation['nodes'][number]['tasks'][number];
}

const ENDED = new Set(['finished', 'failed', 'skipped', 'cancelled']);

export function rowsOf(operation: Operation): Row[] {
  const rows: Row[] = operation.steps.map((step) => ({
    key: `step ${step.name}`,
    kind: 'step',
    title: step.title,
    state: step.state,
    start: step.startedAt ?? null,
    end: step.endedAt ?? null,
    node: '',
    step,
  }));
  for (const node of [{ name: '', tasks: operation.tasks }, ...operation.nodes]) {
    const tasks: Row[] = node.tasks.map((task) => ({
      // The gateway has one task of a name for each step and node, and lists them by their last change.
      key: `task ${node.name} ${task.step} ${task.task}`,
      kind: 'task',
      title: task.task,
      state: task.state,
      start: task.startedAt ?? task.updatedAt,
      end: ENDED.has(task.state) ? task.updatedAt : null,
      node: node.name,
      task,
    }));
    if (!tasks.length) continue;
    tasks.sort((one, other) => (one.start! < other.start! ? -1 : one.start! > other.start! ? 1 : 0));
    const bad = tasks.find((each) => each.state === 'failed');
    const open = tasks.find((each) => each.end === null);
    if (node.name) {
      rows.push({
        key: `node ${node.name}`,
        kind: 'node',
        title: node.name,
        state: (bad ?? open ?? tasks.at(-1)!).state,
        start: tasks[0]!.start,
        end: open ? null : tasks.reduce((last, each) => (each.end! > last ? each.end! : last), ''),
        node: node.name,
      });
    }
    rows.push(...tasks);
  }
  return rows;
}
