import test, { type ExecutionContext, type Implementation } from 'ava';
import { Limiter } from '../../../src/lib/limiter.ts';

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

export default new Proxy(test, {
  apply: (_test, _this, [title, run, ...args]: [string, Implementation<unknown[]>, ...unknown[]]) =>
    test(title, async (t) => {
      await place(t);
      if (typeof run === 'function') await run(t, ...args);
    }),
});
