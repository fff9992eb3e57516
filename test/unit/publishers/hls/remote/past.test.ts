import test from 'ava';
import { LLHLS } from '../../../../../src/publishers/hls/ll/index.ts';
import { Text } from '../../../../../src/publishers/hls/answer/text.ts';
import type { PastSegment } from '../../../../../src/publishers/hls/rewind/journal.ts';
import { Shelf } from '../../../../../src/publishers/hls/rewind/shelf.ts';
import type { Source } from '../../../../../src/publishers/hls/remote/link.ts';
import { pastState, RemotePast } from '../../../../../src/publishers/hls/remote/past.ts';
import { callsOf } from '../../../../../src/publishers/hls/sessions/wire.ts';

const LIST = 'chunklist_1_audio_abcdefgh_llhls.m3u8';
const nameOf = (msn: number): string => `seg_1_${msn}_audio_abcdefgh_llhls.m4s`;

function segment(msn: number, more: Partial<PastSegment> = {}): PastSegment {
  const facts = { discontinuity: false, discontinuitySequence: 0, gap: false, breaks: '' };
  return { name: nameOf(msn), msn, duration: 2, wallClock: msn * 2000, ...facts, ...more };
}

const lines = (msn: number, seconds: number, gap = false): string =>
  `#EXT-X-PROGRAM-DATE-TIME:${new Date(seconds * 1000).toISOString()}\n${gap ? '#EXT-X-GAP\n' : ''}#EXTINF:2.000000,\n${nameOf(msn)}\n`;
const playlist = (first: number, ...segments: string[]): Text =>
  new Text(`#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:${first}\n${segments.join('')}`);

test('after a change of owner, gaps at the head of a playlist are at the times that the next owner lists', async (t) => {
  const shelfOf = (...segments: PastSegment[]): Shelf => {
    const shelf = new Shelf(LIST, 'seg_1_*_audio_abcdefgh_llhls.m4s', '');
    for (const one of segments) shelf.add(one);
    return shelf;
  };
  const owner = (incarnation: string): Source => {
    const node = { id: 'a', incarnation };
    return { node, owner: node };
  };
  let source = owner('first');
  let shelf = shelfOf(segment(0), segment(1), segment(2));
  const asked: number[] = [];
  const past = new RemotePast({
    link: {
      get source() {
        return source;
      },
      calls: callsOf(LLHLS),
    },
    calls: {
      callForBytes: ((_node: unknown, _call: unknown, request: { from: number; until?: number }) => {
        asked.push(request.from);
        return Promise.resolve(pastState('run', shelf, request, 2, 0));
      }) as never,
    },
    path: { vhost: 'default', app: 'app', stream: 'stream' },
    query: '',
    event: false,
  });
  const compose = async (text: Text): Promise<string> =>
    (await past.before(LIST, text, () => text, 'full')).plain.toString();
  t.true((await compose(playlist(2, lines(2, 4)))).endsWith(lines(0, 0) + lines(1, 2) + lines(2, 4)));
  // the owner came back: segment 2 is lost here and not in another rendition
  source = owner('second');
  shelf = shelfOf(
    ...[
      segment(0),
      segment(1),
      segment(2, { gap: true, wallClock: 4500 }),
      segment(3, { gap: true, wallClock: 58_000 }),
    ],
    segment(4, { wallClock: 60_000, discontinuity: true }),
  );
  const text = await compose(
    playlist(1, lines(1, 54, true), lines(2, 56, true), lines(3, 58, true), '#EXT-X-DISCONTINUITY\n', lines(4, 60)),
  );
  t.true(
    text.endsWith(
      `${lines(0, 0)}${lines(1, 2)}${lines(2, 4.5, true)}${lines(3, 58, true)}#EXT-X-DISCONTINUITY\n${lines(4, 60)}`,
    ),
    text,
  );
  t.deepEqual(asked, [0, 0]);
});

/** A relay that knows a long past, and then gets another owner. */
async function relayed(next: (shelf: Shelf) => void, run = 'run') {
  const shelfOf = (): Shelf => {
    const shelf = new Shelf(LIST, 'seg_1_*_audio_abcdefgh_llhls.m4s', '');
    for (let msn = 0; msn < 1200; msn++) shelf.add(segment(msn));
    return shelf;
  };
  const sources = ['first', 'second'].map((incarnation): Source => {
    const node = { id: 'a', incarnation };
    return { node, owner: node };
  });
  let [source] = sources;
  let shelf = shelfOf();
  let isOld = false;
  let runNow = 'run';
  let bytes = 0;
  const past = new RemotePast({
    link: {
      get source() {
        return source as Source;
      },
      calls: callsOf(LLHLS),
    },
    calls: {
      callForBytes: ((_node: unknown, _call: unknown, { from, until }: { from: number; until?: number }) => {
        const answer = pastState(runNow, shelf, isOld ? { from } : { from, until }, 2, 0);
        bytes += answer.bytes.length;
        return Promise.resolve(answer);
      }) as never,
    },
    path: { vhost: 'default', app: 'app', stream: 'stream' },
    query: '',
    event: false,
  });
  const compose = async (msn: number): Promise<string> => {
    const text = playlist(msn, lines(msn, msn * 2));
    return (await past.before(LIST, text, () => text, 'full')).plain.toString();
  };
  await compose(1200);
  const whole = bytes;
  bytes = 0;
  source = sources[1];
  shelf = shelfOf();
  runNow = run;
  next(shelf);
  return {
    whole,
    old: () => (isOld = true),
    compose: async () => await compose(shelf.past.next),
    expected: () => {
      const all = [];
      for (let msn = shelf.past.first; msn < shelf.past.next; msn++) {
        const { gap, wallClock } = shelf.past.segment(msn, nameOf(msn));
        all.push(lines(msn, wallClock / 1000, gap));
      }
      return all.join('') + lines(shelf.past.next, shelf.past.next * 2);
    },
    fetched: () => bytes,
  };
}

test('after a change of owner a relay fetches only what it does not know', async (t) => {
  const { whole, compose, expected, fetched } = await relayed((shelf) => {
    shelf.drop(300);
    // the last ones were lost with the owner before
    shelf.past.markGap(1199);
    shelf.add(segment(1200));
  });
  t.true((await compose()).endsWith(expected()));
  t.true(fetched() < whole / 20, `${fetched()} of ${whole} bytes`);
});

test('a relay fetches all where the next owner lists other segments, is of an earlier version, or of another run', async (t) => {
  for (const [next, run, isOld, isAnew] of [
    [(shelf: Shelf) => (shelf.past.markGap(400), void shelf.add(segment(1200))), 'run', false, true],
    [(shelf: Shelf) => void shelf.add(segment(1200)), 'run', true, true],
    [(shelf: Shelf) => void shelf.add(segment(1200)), 'another', false, true],
    [(shelf: Shelf) => void shelf.add(segment(1200, { wallClock: 2_401_000 })), 'run', false, false],
  ] as const) {
    const { whole, old, compose, expected, fetched } = await relayed(next, run);
    if (isOld) old();
    t.true((await compose()).endsWith(expected()), run);
    t.is(fetched() > whole / 2, isAnew);
  }
});
