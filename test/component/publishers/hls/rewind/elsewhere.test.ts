import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { NodeIdentity } from '#cluster';
import { kilnError } from '../../../../../src/errors.ts';
import type { PeerCalls } from '../../../../../src/peers/peer-calls.ts';
import { answerElsewhere, findElsewhere } from '../../../../../src/publishers/hls/rewind/elsewhere.ts';
import { journalLine, type PastSegment } from '../../../../../src/publishers/hls/rewind/journal.ts';
import { RunFiles } from '../../../../../src/publishers/hls/rewind/run-files.ts';

const NAMES = { vhost: 'v', app: 'a', stream: 's', kind: 'llhls' };
const RUN = 'run00001';
const LISTS = ['chunklist_0_video_run00001_llhls.m3u8', 'chunklist_1_audio_run00001_llhls.m3u8'];

function segment(track: number, msn: number): PastSegment {
  const name = `seg_${track}_${msn}_run00001_llhls.m4s`;
  const facts = { discontinuity: false, discontinuitySequence: 0, gap: true, breaks: '' };
  return { name, msn, duration: 2, wallClock: msn * 2000, ...facts };
}

type Handler = (request: never) => Promise<unknown>;

/** This node, and another one whose disk has thousands of segments in journals. */
async function open(t: ExecutionContext, segments: number) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-elsewhere-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const [track, list] of LISTS.entries()) {
    for (let first = 0; first < segments; first += 1000) {
      const lines = Array.from({ length: 1000 }, (_, index) => journalLine(segment(track, first + index)));
      await writeFile(join(folder, `${list}.${first}.journal`), lines.join(''));
    }
  }
  const handlers = new Map<string, Handler>();
  /** Calls that fail before others are answered. */
  const failures: string[] = [];
  const sizes: number[] = [];
  const calls = {
    answerBytes: ({ name }: { readonly name: string }, handler: Handler) => void handlers.set(name, handler),
    callForBytes: async (_node: unknown, { name }: { readonly name: string }, request: never) => {
      const failure = failures.shift();
      if (failure !== undefined && failure !== '') throw kilnError(failure as 'ownerSilent');
      const answer = (await handlers.get(name)?.(request)) as { readonly bytes: Buffer };
      sizes.push(answer.bytes.length);
      return answer;
    },
  } as unknown as PeerCalls;
  let nodes = ['me', 'other'].map((id) => ({ id, state: 'alive' }) as unknown as NodeIdentity);
  const cluster = { self: { id: 'me' } as NodeIdentity, nodes: () => nodes as never };
  answerElsewhere(calls, 'llhls', (_names, run) => (run === RUN ? new RunFiles(folder) : undefined));
  return { find: findElsewhere(calls, cluster), failures, sizes, leave: () => (nodes = []) };
}

const numbers = (segments: readonly PastSegment[] = []): number[] => segments.map(({ msn }) => msn);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, msn) => msn);

test('what another node has is listed in pages', async (t) => {
  const { find, sizes } = await open(t, 7000);
  const [other, ...more] = await find(NAMES, RUN);
  t.is(more.length, 0);
  t.is(other?.more, undefined);
  for (const list of LISTS) t.deepEqual(numbers(other?.lists.get(list)), upTo(7000));
  t.is(sizes.length, 4);
  t.true(Math.max(...sizes) < 1_500_000);
});

test('a node that does not answer is asked again, from the page on that is missing', async (t) => {
  const { find, failures, sizes } = await open(t, 5000);
  failures.push('ownerSilent');
  const [silent] = await find(NAMES, RUN);
  t.is(silent?.lists.size, 0);
  failures.push('', '', 'ownerUnreachable');
  const some = await silent?.more?.();
  t.is(sizes.length, 2);
  t.deepEqual(numbers(some?.lists.get(LISTS[0] as string)), upTo(4000));
  failures.push('ownerSilent');
  const none = await some?.more?.();
  t.is(none?.lists.size, 0);
  const rest = await none?.more?.();
  t.deepEqual(
    numbers(rest?.lists.get(LISTS[1] as string)),
    upTo(5000).filter((msn) => msn >= 4000),
  );
  t.is(rest?.more, undefined);
});

test('a node that knows nothing of the stream, or has left, is not asked again', async (t) => {
  const { find, failures, leave } = await open(t, 1000);
  t.deepEqual(await find(NAMES, 'run00002'), []);
  failures.push('callUnknown');
  t.deepEqual(await find(NAMES, RUN), []);
  const [other] = await find(NAMES, RUN);
  t.true(other?.isThere());
  leave();
  t.false(other?.isThere());
  await t.throwsAsync(other?.read('init_0_video_run00001_llhls.m4s') ?? Promise.resolve(), {
    code: 'ownerUnreachable',
  });
  t.deepEqual(await find(NAMES, RUN), []);
});
