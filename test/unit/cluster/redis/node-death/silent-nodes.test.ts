import test from 'ava';
import { SilentNodes } from '../../../../../cluster/redis/node-death/silent-nodes.ts';
import type { Life } from '../../../../../cluster/redis/nodes.ts';
import { until } from '../../../../support/time/until.ts';

const NODE = { id: 'b', incarnation: '1' } as const;

/** Silent nodes whose answers the test gives, and what was reported of them. */
function openSilentNodes({ reporting }: { readonly reporting?: Error } = {}) {
  const answers: PromiseWithResolvers<Life>[] = [];
  const reports: string[] = [];
  const faults: string[] = [];
  const silentNodes = new SilentNodes({
    peers: {
      ask: () => {
        const answer = Promise.withResolvers<Life>();
        answers.push(answer);
        return answer.promise;
      },
    },
    nodes: {
      reportLife: async ({ id }, life) => {
        reports.push(`${id} ${life}`);
        if (reporting !== undefined) throw reporting;
      },
    },
    onFault: ({ message }) => faults.push(message),
  });
  /** Asks until the node is asked another time: until then an earlier question is open. */
  const askAgain = (count: number) =>
    until('another question', () => {
      silentNodes.ask(NODE);
      return answers.length === count;
    });
  return { silentNodes, answers, reports, faults, askAgain };
}

test('a node is asked once at a time, and again after its answer was reported', async (t) => {
  const { silentNodes, answers, reports, askAgain } = openSilentNodes();
  silentNodes.ask(NODE);
  silentNodes.ask(NODE);
  t.is(answers.length, 1);
  silentNodes.ask({ id: 'c', incarnation: '2' });
  t.is(answers.length, 2);
  answers[0]?.resolve('lives');
  await until('a report', () => reports.length === 1);
  t.deepEqual(reports, ['b lives']);
  await askAgain(3);
});

test('a question or a report that fails is a fault, and the node is asked again', async (t) => {
  const { silentNodes, answers, reports, faults, askAgain } = openSilentNodes({ reporting: new Error('no Redis') });
  silentNodes.ask(NODE);
  answers[0]?.reject(new Error('no question'));
  await askAgain(2);
  t.deepEqual([reports, faults], [[], ['no question']]);
  answers[1]?.resolve('silent');
  await askAgain(3);
  t.deepEqual([reports, faults], [['b silent'], ['no question', 'no Redis']]);
});

test('an answer that comes after the end is not reported', async (t) => {
  const { silentNodes, answers, reports, askAgain } = openSilentNodes();
  silentNodes.ask(NODE);
  silentNodes.close();
  answers[0]?.resolve('over');
  await askAgain(2);
  t.deepEqual(reports, []);
});
