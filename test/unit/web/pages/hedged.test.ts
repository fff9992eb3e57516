import { mock } from 'node:test';
import test from 'ava';

const { hedged } = (await import(new URL('../../../../src/web/pages/hedged.js', import.meta.url).href)) as {
  hedged: <T>(ask: () => Promise<T>, pauses: readonly number[], late?: (answer: T) => void) => Promise<T>;
};

test.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.afterEach.always(() => mock.timers.reset());

/** Questions that are answered by hand. */
function questions() {
  const asked: PromiseWithResolvers<string>[] = [];
  const ask = (): Promise<string> => {
    const question = Promise.withResolvers<string>();
    asked.push(question);
    return question.promise;
  };
  return { asked, ask };
}

/** Until all that is settled has been heard of. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test.serial('a request that is answered in time is sent once', async (t) => {
  const { asked, ask } = questions();
  const answer = hedged(ask, [300, 600]);
  mock.timers.tick(299);
  asked[0]?.resolve('one');
  t.is(await answer, 'one');
  mock.timers.tick(10_000);
  t.is(asked.length, 1);
});

test.serial(
  'a request that is not answered is sent again after each pause; the first answer counts, and later ones are reported',
  async (t) => {
    const { asked, ask } = questions();
    const late: string[] = [];
    const answer = hedged(ask, [300, 600], (one) => late.push(one));
    mock.timers.tick(300);
    t.is(asked.length, 2);
    mock.timers.tick(599);
    t.is(asked.length, 2);
    mock.timers.tick(1);
    t.is(asked.length, 3);
    mock.timers.tick(10_000);
    t.is(asked.length, 3);
    asked[1]?.resolve('second');
    t.is(await answer, 'second');
    asked[0]?.resolve('first');
    asked[2]?.reject(new Error('not there'));
    await turn();
    t.deepEqual(late, ['first']);
  },
);

test.serial('a failure is waited out while another question is open', async (t) => {
  const { asked, ask } = questions();
  const answer = hedged(ask, [300]);
  mock.timers.tick(300);
  asked[1]?.reject(new Error('not there'));
  await turn();
  asked[0]?.resolve('slow');
  t.is(await answer, 'slow');
});

test.serial('no other node is asked when all that were asked have failed', async (t) => {
  const { asked, ask } = questions();
  const answer = hedged(ask, [300, 600]);
  asked[0]?.reject(new Error('refused'));
  await t.throwsAsync(answer, { message: 'refused' });
  mock.timers.tick(10_000);
  t.is(asked.length, 1);
});
