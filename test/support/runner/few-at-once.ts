import test, { type ExecutionContext, type Implementation } from 'ava';
import { Limiter } from '../../../src/lib/limiter.ts';
import { placedError } from './placed-error.ts';

/*
 * What files of tests import as `ava` (`quick-imports.js`): a few of a file's tests run at a time, not all of them. Each may
 * start servers, encoders and browsers, and with twenty of them on two cores none comes in time.
 */
const AT_ONCE = 2;

const running = new Limiter(AT_ONCE);

/** Waits until fewer run, and gives the place back when the test's teardown is over. */
const place = (t: ExecutionContext): Promise<void> =>
  new Promise((begin) => {
    void running.run(
      () =>
        new Promise<void>((end) => {
          t.teardown(end);
          begin();
        }),
    );
  });

type Titled = [title: string, run: Implementation<unknown[]>, ...args: unknown[]];

async function runPlaced(t: ExecutionContext, run: Implementation<unknown[]>, args: unknown[]): Promise<void> {
  try {
    if (typeof run === 'function') await run(t, ...args);
  } catch (error) {
    throw placedError(error);
  }
}

const serial = new Proxy(test.serial, {
  apply: (_test, _this, [title, run, ...args]: Titled) => test.serial(title, (t) => runPlaced(t, run, args)),
});

export default new Proxy(test, {
  get: (target, name) => (name === 'serial' ? serial : Reflect.get(target, name)),
  apply: (_test, _this, [title, run, ...args]: Titled) =>
    test(title, async (t) => {
      await place(t);
      await runPlaced(t, run, args);
    }),
});
