import test, { type ExecutionContext, type Implementation } from 'ava';
import { Limiter } from '../../../src/lib/limiter.ts';
import { runHook, runTest } from './guard.ts';

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

const serial = new Proxy(test.serial, {
  apply: (_test, _this, [title, run, ...args]: Titled) => test.serial(title, (t) => runTest(t, run, args)),
});

/** @returns `test.before` or its like, for hooks that are limited in time, with `.always` too */
const limited = <Declare extends (...args: never[]) => void>(declare: Declare): Declare =>
  new Proxy(declare, {
    get: (target, name) =>
      name === 'always' ? limited(Reflect.get(target, name) as Declare) : Reflect.get(target, name),
    apply: (_declare, _this, args: (string | Implementation<[]>)[]) =>
      Reflect.apply(
        declare,
        undefined,
        args.map((arg) => (typeof arg === 'string' ? arg : (t: ExecutionContext) => runHook(t, arg, []))),
      ),
  });

const replaced = new Map<string | symbol, unknown>([
  ['serial', serial],
  ['before', limited(test.before)],
  ['after', limited(test.after)],
  ['beforeEach', limited(test.beforeEach)],
  ['afterEach', limited(test.afterEach)],
]);

export default new Proxy(test, {
  get: (target, name) => replaced.get(name) ?? Reflect.get(target, name),
  apply: (_test, _this, [title, run, ...args]: Titled) =>
    test(title, async (t) => {
      await place(t);
      await runTest(t, run, args);
    }),
});
