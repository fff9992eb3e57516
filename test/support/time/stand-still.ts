/** This thread does nothing for a while, as one whose machine is busy. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The same where what is due by then comes next, and only behind it what was received meanwhile. */
export function standStillBeforeTimers(ms: number): Promise<void> {
  return new Promise(
    (resolve) =>
      void setImmediate(() => {
        standStill(ms);
        resolve();
      }),
  );
}
