// Words for what the API says in codes.
import type { Schemas } from './api';

export type Tone = 'good' | 'busy' | 'bad' | 'warn' | 'plain';

const TONES: Record<string, Tone> = {
  COMPLETED: 'good',
  STARTING: 'busy',
  PROCESSING: 'busy',
  ROLLING_BACK: 'busy',
  FAILED_TEMP: 'bad',
  FAILED: 'bad',
  ROLLED_BACK: 'warn',
  ACTIVE: 'good',
  PENDING: 'busy',
  UNREACHABLE: 'bad',
  ERROR: 'bad',
  ONBOARDED: 'good',
  UPLOADING: 'busy',
  CREATED: 'plain',
  INSTANTIATED: 'good',
  NOT_INSTANTIATED: 'plain',
  done: 'good',
  finished: 'good',
  asked: 'busy',
  started: 'busy',
  progressed: 'busy',
  undoing: 'busy',
  failed: 'bad',
  cancelled: 'warn',
  undone: 'warn',
  waiting: 'plain',
  skipped: 'plain',
  ok: 'good',
  progressing: 'busy',
  problem: 'bad',
  unknown: 'warn',
  READY: 'good',
  DEGRADED: 'bad',
  REMOVING: 'busy',
  Pending: 'busy',
  Reserved: 'good',
  Bound: 'good',
  Released: 'plain',
  Failed: 'bad',
  IDLE: 'good',
  DELIVERING: 'busy',
  WAITING: 'bad',
  ready: 'good',
  'not-ready': 'bad',
  away: 'bad',
  missing: 'bad',
  CRITICAL: 'bad',
  MAJOR: 'bad',
  MINOR: 'warn',
  WARNING: 'warn',
  CLEARED: 'good',
  MEASURING: 'good',
  RECEIVING: 'good',
  UP: 'warn',
  DOWN: 'good',
  STARTED: 'busy',
  DONE: 'good',
  NOT_DONE: 'warn',
};
// A form for each tone: colours alone are not seen by everyone.
export const MARKS: Record<Tone, string> = { good: '✓', busy: '◔', bad: '✗', warn: '!', plain: '·' };

const WORDS: Record<string, string> = {
  FAILED_TEMP: 'failed, waits for a decision',
  ROLLING_BACK: 'rolling back',
  ROLLED_BACK: 'rolled back',
  NOT_INSTANTIATED: 'not instantiated',
  asked: 'running',
  progressed: 'running',
  started: 'running',
  'not-ready': 'not ready',
  IDLE: 'all delivered',
  WAITING: 'not accepted, tried again',
};

export function tone(state: string): Tone {
  return TONES[state] ?? 'plain';
}

export function word(state: string): string {
  return WORDS[state] ?? state.toLowerCase().replaceAll('_', ' ');
}

const OPERATIONS: Record<string, string> = {
  OPERATE: 'Start or stop',
  CHANGE_EXT_CONN: 'Change external connectivity',
  CHANGE_VNFPKG: 'Change package',
  MODIFY_INFO: 'Modify information',
};

export function operationName(operation: string): string {
  return OPERATIONS[operation] ?? operation.charAt(0) + operation.slice(1).toLowerCase().replaceAll('_', ' ');
}

export function objectName(object: NonNullable<Schemas['Cause']['object']>): string {
  return `${object.kind} ${object.namespace ? `${object.namespace}/` : ''}${object.name}`;
}

/** Returns the name of an attribute as people read it. */
export function titled(name: string): string {
  const words = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
