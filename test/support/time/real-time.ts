/**
 * Hands over units again and again, each when its time has come, behind what is late.
 * @param units in order of time, in milliseconds
 * @param length milliseconds after which they begin again
 * @param send is told the time since the beginning
 * @returns ends it
 */
export function inRealTime<U extends { readonly time: number }>(
  units: readonly U[],
  length: number,
  send: (unit: U, time: number) => void,
): () => void {
  const started = performance.now();
  let next = 0;
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  const step = (): void => {
    for (;;) {
      const unit = units[next % units.length];
      if (unit === undefined || ended) return;
      const time = Math.floor(next / units.length) * length + unit.time;
      const wait = started + time - performance.now();
      if (wait > 0.5) {
        timer = setTimeout(step, wait);
        return;
      }
      next++;
      send(unit, Math.round(time));
    }
  };
  step();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
