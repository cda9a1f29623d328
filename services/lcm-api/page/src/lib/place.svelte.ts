// The place in the page: its path and query. Links are plain links, so they can be shared, and back works.

const ROOT = '/ui';

function here(): { path: string; query: URLSearchParams } {
  const path = location.pathname.startsWith(ROOT) ? location.pathname.slice(ROOT.length) : '/';
  return { path: path || '/', query: new URLSearchParams(location.search) };
}

class Place {
  #now = $state.raw(here());
  /** The page of a list that a link has led to; "" for the first. */
  readonly page = $derived(this.#now.query.get('page') ?? '');

  constructor() {
    addEventListener('popstate', () => (this.#now = here()));
    document.addEventListener('click', (event) => this.#click(event));
  }

  get path(): string {
    return this.#now.path;
  }

  get query(): URLSearchParams {
    return this.#now.query;
  }

  /** The parts of the path. */
  get parts(): string[] {
    return this.path.split('/').filter(Boolean).map(decoded);
  }

  go(to: string): void {
    history.pushState(null, '', ROOT + to);
    this.#now = here();
    scrollTo(0, 0);
    // The link that was followed may be gone; without this the next Tab would begin anywhere.
    document.getElementById('main')?.focus({ preventScroll: true });
  }

  /** Goes to a place of the page instead of the present one, without an entry for "back". */
  replace(to: string): void {
    history.replaceState(null, '', ROOT + to);
    this.#now = here();
  }

  /** Changes the query in place, without a new entry for "back". */
  set(changes: Record<string, string>): void {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(changes)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    const text = query.toString();
    history.replaceState(null, '', location.pathname + (text ? `?${text}` : ''));
    this.#now = here();
  }

  #click(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.('a');
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    // A place on this page is the browser's.
    if (link.hash && link.pathname === location.pathname) return;
    if (link.pathname !== ROOT && !link.pathname.startsWith(`${ROOT}/`)) return;
    event.preventDefault();
    this.go(link.pathname.slice(ROOT.length) + link.search);
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const place = new Place();

/** Returns the query of a list: of the page that a link has led to, whose marker has the filters, or of the first one with these. */
export function pageOf<T extends object>(filters: T): { nextpage_opaque_marker: string } | ({ limit: string } & T) {
  return place.page ? { nextpage_opaque_marker: place.page } : { limit: '50', ...filters };
}

/** Returns the address of a place, from its parts. */
export function to(...parts: string[]): string {
  return [ROOT, ...parts.map(encodeURIComponent)].join('/');
}
