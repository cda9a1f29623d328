// Times as people read them. One clock serves the whole page, and stands while it is hidden.

class Now {
  ms = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.ms = Date.now();
    }, 1000);
    document.addEventListener('visibilitychange', () => (this.ms = Date.now()));
  }
}

export const now = new Now();

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export function between(start: string, end?: string | null): string {
  return duration(((end ? Date.parse(end) : now.ms) - Date.parse(start)) / 1000);
}

export function moment(time: string): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}
