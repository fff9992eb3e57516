import test from './few-at-once.ts';

/*
 * What files of a room that wait while they are imported have as `ava`: ava takes no test that is declared after a wait behind the first,
 * so all are declared when the last file is imported.
 */
type Declare = typeof test;

const declared: (() => void)[] = [];

const later =
  (declare: (...args: Parameters<Declare>) => void) =>
  (...args: Parameters<Declare>): void =>
    void declared.push(() => declare(...args));

export default Object.assign(later(test), { serial: later(test.serial as never), skip: later(test.skip as never) });

/** Declares the tests of all files that were imported. */
export function declareCollected(): void {
  for (const declare of declared) declare();
}
