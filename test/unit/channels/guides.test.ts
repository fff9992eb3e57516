import test from 'ava';
import { pino } from 'pino';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { Guides } from '../../../src/channels/guides.ts';
import type { MediaFiles } from '../../../src/channels/scheduled/media-files.ts';
import { channelRegistry } from '../../support/channels/channels.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';

const item = (name: string) => ({
  url: `file://${name}`,
  start: 0,
  duration: -1,
  fallbackOnErr: true,
  forwardData: false,
});
const BEGIN = Date.parse('2099-01-01T00:00:00Z');
const SPEC = {
  stream: { bypassTranscoder: false, videoTrack: true, audioTrack: true, audioMap: [], errorToleranceDurationMs: 500 },
  programs: [{ name: 'all', scheduled: 0, repeat: true, items: [item('a'), item('b')] }],
};
const SPAN = { from: BEGIN, to: BEGIN + 30_000 };

/** Nodes, each with some files of so many milliseconds. */
async function open(
  t: Parameters<typeof MemoryCluster.create>[0],
  files: Readonly<Record<string, Record<string, number>>>,
) {
  const cluster = MemoryCluster.create(t, 1);
  const log = pino({ level: 'silent' });
  let owner: string | undefined;
  const nodes = new Map<string, Guides>();
  for (const [id, lengths] of Object.entries(files)) {
    const node = await cluster.open(id);
    const registry = channelRegistry();
    const calls = new PeerCalls(node, log);
    const media = {
      lengthOf: (url: string) => lengths[url] || undefined,
      measure: async (urls: Iterable<string>, onUnreadable?: (url: string) => void) => {
        for (const url of urls) if (lengths[url] === undefined) onUnreadable?.(url);
        // NaN: it takes longer than a guide waits
        if (Object.values(lengths).some(Number.isNaN)) await new Promise(() => {});
      },
    } as MediaFiles;
    const tasks = {
      owner: () => {
        const row = node.nodes().find((one) => one.id === owner);
        return row && { ...row, fence: 1, meta: null };
      },
    };
    const others = new OtherNodes(node, calls);
    nodes.set(id, new Guides({ registry, tasks, others, calls, filesOf: async () => media }));
  }
  const application = channelRegistry().vhost('default').application('app');
  const guide = async (id: string) => {
    const { entries, problems, unmeasured } = await (nodes.get(id) as Guides).of(application, 'tv', SPEC, SPAN);
    return {
      lengths: entries.map(({ begins, ends = 0 }) => ends - begins),
      problems: problems.map(({ url }) => url),
      unmeasured,
    };
  };
  return { cluster, guide, own: (id: string | undefined) => (owner = id) };
}

test('the guide of a channel is that of the node that runs it', async (t) => {
  const { cluster, guide, own } = await open(t, {
    a: { 'file://a': 10_000, 'file://b': 20_000 },
    b: { 'file://a': 5000, 'file://b': 5000 },
  });
  own('b');
  const ofB = { lengths: [5000, 5000, 5000, 5000, 5000, 5000], problems: [], unmeasured: 0 };
  for (const id of ['a', 'b']) t.deepEqual(await guide(id), ofB);
  own('a');
  t.is((await guide('b')).lengths.length, 2);
  cluster.kill('a');
  const error = await t.throwsAsync(guide('b'));
  t.true(['ownerUnreachable', 'ownerSilent'].includes((error as { code?: string }).code ?? ''), error?.message);
});

test('files of the node with the most count where no node runs a channel', async (t) => {
  const { guide } = await open(t, {
    a: {},
    b: { 'file://a': 5000, 'file://b': 10_000 },
    c: { 'file://a': 7000 },
  });
  for (const id of ['a', 'b', 'c']) t.deepEqual((await guide(id)).problems, [], id);
});

test('a file that takes long to probe is reported as such, also by a node that is asked for it', async (t) => {
  const { guide, own } = await open(t, { a: {}, b: { 'file://a': NaN, 'file://b': 5000 } });
  own('b');
  t.is((await guide('b')).unmeasured, 1);
  t.is((await guide('a')).unmeasured, 1);
});
