// The stream of events, from the state that a view has shown (`sequence`). One stream serves all views.
import { body, client, PAGE_HEADERS, refusal } from './api';
import { seen } from './sight';

export interface Happened {
  kind: string;
  /** The event as JSON. Ids are unique, so a view looks for its own in it. */
  text: string;
}

type Listener = (event: Happened | 'missed') => void;

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15000;
// The gateway sends a heartbeat each 15 s.
const SILENCE_MS = 40000;

class Live {
  /** Whether the connection is lost, and the page tries again. */
  isLost = $state(false);
  #listeners = new Set<Listener>();
  #last = '';
  #running: AbortController | null = null;

  /** Calls the listener for each event from now on, until the returned function is called. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Opens the stream after the state `sequence`, if it is not open: its listeners were there before that state was read. */
  begin(sequence: string): void {
    if (this.#running) return;
    this.#last = sequence;
    this.#running = new AbortController();
    void this.#run(this.#running.signal);
  }

  /** Opens the stream after the present state, if it is not open, for a view that has read none. */
  async beginNow(): Promise<void> {
    if (this.#running) return;
    const asked = body(client.GET('/kubevnfm/v1/operations', { params: { query: { limit: '1' } } }));
    await asked.then(({ sequence }) => this.begin(sequence)).catch(() => {});
  }

  /** Ends the stream: at a logout. */
  end(): void {
    this.#running?.abort();
    this.#running = null;
    this.isLost = false;
  }

  async #run(signal: AbortSignal): Promise<void> {
    let wait = FIRST_WAIT_MS;
    while (!signal.aborted) {
      const unseen = await seen();
      const began = Date.now();
      try {
        await this.#read(AbortSignal.any([signal, unseen]));
      } catch {
        // The banner says so; what follows is the same as after an end.
      }
      if (signal.aborted) return;
      if (unseen.aborted) continue;
      this.isLost = true;
      wait = Date.now() - began > SILENCE_MS ? FIRST_WAIT_MS : wait;
      await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random() / 2)));
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  async #read(ended: AbortSignal): Promise<void> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const response = await fetch('/kubevnfm/v1/events', {
        headers: { ...PAGE_HEADERS, Accept: 'text/event-stream', 'Last-Event-ID': this.#last },
        signal: AbortSignal.any([ended, silence.signal]),
        cache: 'no-store',
      });
      if (!response.ok || !response.body) throw refusal(response.status, undefined);
      let rest = '';
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        this.isLost = false;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        const blocks = (rest + value).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) this.#take(block);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #take(block: string): void {
    let kind = '';
    let text = '';
    for (const line of block.split('\n')) {
      const [name, value] = [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trimStart()];
      if (name === 'id') this.#last = value;
      if (name === 'event') kind = value;
      if (name === 'data') text += value;
    }
    if (!kind) return;
    const event = kind === 'missed' ? kind : { kind, text };
    for (const listener of this.#listeners) listener(event);
  }
}

export const live = new Live();
