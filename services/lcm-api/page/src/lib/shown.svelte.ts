// A view's state: read, shown, and read again after the events that concern it.
import { untrack } from 'svelte';
import { reason, Refused } from './api';
import { live, type Happened } from './live.svelte';

/** Events of a running cluster come in crowds: between two reads of a view is at least this time, and for a large view more. */
const PAUSE_MS = 700;
const PAUSE_OF_READ = 4;
const AGAIN_MS = 2000;
/** No answer, or that of a gateway or proxy in front of something that is away. */
const AWAY = new Set([0, 502, 503, 504]);

interface Snapshot {
  sequence: string;
}

export class Shown<T extends Snapshot> {
  value = $state.raw<T | null>(null);
  error = $state('');
  #read: () => Promise<T>;
  #leave: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #nextAt = 0;
  #isReading = false;
  #isOld = false;
  #isOver = false;

  /**
   * Reads with `read`, and again after the events that `concerns` returns true for, and when what `asked` returns has
   * changed. Made by a component while it is made, with which it ends.
   */
  constructor(read: () => Promise<T>, concerns: (event: Happened) => boolean, asked: () => unknown = () => null) {
    this.#read = read;
    // Before the first read: what happens while it is under way is read again, so nothing is missed.
    this.#leave = live.listen((event) => {
      if (event === 'missed' || concerns(event)) this.soon();
    });
    $effect(() => {
      asked();
      untrack(() => void this.again());
    });
    $effect(() => () => this.#end());
  }

  /** Reads now. */
  async again(): Promise<void> {
    if (this.#isReading || this.#isOver) {
      this.#isOld = true;
      return;
    }
    this.#isReading = true;
    this.#isOld = false;
    const began = Date.now();
    try {
      const value = await this.#read();
      if (this.#isOver) return;
      this.value = value;
      this.error = '';
      live.begin(value.sequence);
    } catch (error) {
      if (!this.#isOver) this.error = reason(error);
      if (error instanceof Refused && AWAY.has(error.status)) this.#after(AGAIN_MS);
    } finally {
      this.#isReading = false;
      this.#nextAt = Date.now() + Math.max(PAUSE_MS, PAUSE_OF_READ * (Date.now() - began));
      if (this.#isOld) this.soon();
    }
  }

  /** Reads at once, or soon after the last read. */
  soon(): void {
    if (this.#isReading) this.#isOld = true;
    else this.#after(this.#nextAt - Date.now());
  }

  /** Reads after a time, unless a read is due already. */
  #after(ms: number): void {
    if (this.#isOver) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.again();
    }, ms);
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#leave();
  }
}
