/** This process does nothing else for a while, as one whose machine is busy. */
export function standStill(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
