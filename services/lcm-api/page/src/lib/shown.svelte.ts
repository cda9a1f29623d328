// A view's state: read, shown, and read again after the events that concern it.
import { untrack } from 'svelte';
import { reason, Refused } from './api';
import { live, type Happened } from './live.svelte';

/** Events of a running cluster come in crowds: between two reads of a view is at least this time, and for a large view more. */
const PAUSE_MS = 700;
const PAUSE_OF_READ = 4;
const AGAIN_MS = 2000;
/** Events that come together are drawn together. A timer, because a hidden tab has no frames. */
const DRAW_MS = 40;
/** After so many events it is the next read that counts. */
const MOST_NEWS = 5000;
/** The progress of a task is stored by those that hear the event, as this page does: a read soon after it may be without it. */
const STORED_MS = 3000;
/** No answer, or that of a gateway or proxy in front of something that is away. */
const AWAY = new Set([0, 502, 503, 504]);

interface Snapshot {
  sequence: string;
}

export class Shown<T extends Snapshot> {
  value = $state.raw<T | null>(null);
  error = $state('');
  /** Whether the error is that nothing has answered: while the whole connection is lost, the banner says so for all that is shown. */
  isAway = $state(false);
  #read: () => Promise<T>;
  #apply: ((value: T, events: Happened[]) => T) | null;
  /** Events that the next value that is read may be without, with the time at which they came. */
  #news: { at: number; event: Happened }[] = [];
  #drawn = 0;
  #drawing: ReturnType<typeof setTimeout> | undefined;
  #leave: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #nextAt = 0;
  #isReading = false;
  #isOld = false;
  #isOver = false;

  /**
   * Reads with `read`, and again after the events that `concerns` returns true for, and when what `asked` returns has
   * changed. Made by a component while it is made, with which it ends. What `apply` makes of a value and of events after it is
   * shown until the next read.
   */
  constructor(
    read: () => Promise<T>,
    concerns: (event: Happened) => boolean,
    asked: () => unknown = () => null,
    apply: ((value: T, events: Happened[]) => T) | null = null,
  ) {
    this.#read = read;
    this.#apply = apply;
    // Before the first read: what happens while it is under way is read again, so nothing is missed.
    this.#leave = live.listen((event) => {
      if (event !== 'missed' && !concerns(event)) return;
      this.soon();
      if (event !== 'missed' && apply && this.#news.length < MOST_NEWS) {
        this.#news.push({ at: Date.now(), event });
        this.#drawing ??= setTimeout(() => this.#draw(), DRAW_MS);
      }
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
    this.#draw();
    this.#news = this.#news.filter(({ at }) => at > began - STORED_MS);
    this.#drawn = this.#news.length;
    try {
      const value = await this.#read();
      if (this.#isOver) return;
      this.value = this.#with(value, 0);
      this.error = '';
      live.begin(value.sequence);
    } catch (error) {
      if (!this.#isOver) this.error = reason(error);
      this.isAway = error instanceof Refused && AWAY.has(error.status);
      if (this.isAway) this.#after(AGAIN_MS);
    } finally {
      this.#isReading = false;
      this.#nextAt = Date.now() + Math.max(PAUSE_MS, PAUSE_OF_READ * (Date.now() - began));
      if (this.#isOld) this.soon();
    }
  }

  #draw(): void {
    clearTimeout(this.#drawing);
    this.#drawing = undefined;
    if (this.value) this.value = this.#with(this.value, this.#drawn);
  }

  /** Returns a value with what has happened, as far as it came behind the first ones. */
  #with(value: T, first: number): T {
    const events = this.#news.slice(first).map(({ event }) => event);
    this.#drawn = this.#news.length;
    return this.#apply && events.length ? this.#apply(value, events) : value;
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
    clearTimeout(this.#drawing);
    this.#leave();
  }
}
