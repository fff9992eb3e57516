import type { ExecutionContext } from 'ava';

/** Keeps the process of a test that waits for timers alone that hold no process (`unref`): ava would end it as one that never ends. */
export function stayAwake(t: ExecutionContext): void {
  const timer = setInterval(() => undefined, 1000);
  t.teardown(() => clearInterval(timer));
}
