import test from 'ava';
import {
  isWorthSaving,
  resumeFrom,
  readSavedState,
  toSavedState,
  type SavedPlaylistState,
} from '../../../../../src/publishers/hls/local/saved-state.ts';

const AT = 1_700_000_000_000;
const COMPLETE = { complete: true, at: AT, segmentDuration: 2 };
const GROWING = { ...COMPLETE, complete: false };
const PROGRESS = {
  msn: 7,
  discontinuities: 2,
  inits: new Map([
    [0, 1],
    [1, 3],
  ]),
};

test('the saved state of a stream is small JSON, and read again says where to go on', (t) => {
  const kept = toSavedState('AbCdEfGh', PROGRESS, COMPLETE, ['x']);
  const read = readSavedState(JSON.parse(JSON.stringify(kept)));
  t.deepEqual(read, kept);
  if (read === undefined) return t.fail();
  t.deepEqual(resumeFrom(read, AT + 20_000), {
    msn: 8,
    past: {
      discontinuities: 2,
      inits: new Map([
        [0, 1],
        [1, 3],
      ]),
      gaps: 0,
    },
  });
  t.true(
    JSON.stringify(
      toSavedState(
        'AbCdEfGh',
        PROGRESS,
        COMPLETE,
        Array.from({ length: 9999 }, () => 'x'.repeat(128)),
      ),
    ).length < 10_000,
  );
});

test('a node that died may have been ahead of what it kept', (t) => {
  const kept = toSavedState('AbCdEfGh', PROGRESS, GROWING, []);
  if (kept === undefined) return t.fail();
  const { msn, past } = resumeFrom(kept, AT);
  t.true(msn > PROGRESS.msn + 1);
  t.true((past.inits.get(0) ?? 0) > 1);
  t.true(msn - past.gaps < PROGRESS.msn, 'players find the way from what they know');
});

test('the playlist of a stream that has just begun lists no segments that never existed', (t) => {
  for (const begun of [0, 1, 2]) {
    const kept = toSavedState('AbCdEfGh', { ...PROGRESS, msn: begun }, GROWING, []);
    if (kept === undefined) return t.fail();
    const { msn, past } = resumeFrom(kept, AT);
    t.is(msn - past.gaps, 0);
  }
});

test('a node that could not keep anything for a while, and died, was as far ahead as that lasted', (t) => {
  const kept = toSavedState('AbCdEfGh', PROGRESS, GROWING, []);
  if (kept === undefined) return t.fail();
  const { msn, past } = resumeFrom(kept, AT + 20_000);
  t.true(msn > PROGRESS.msn + 10);
  t.true((past.inits.get(1) ?? 0) > 3 + 10);
  t.true(msn - past.gaps < PROGRESS.msn);
  t.true(resumeFrom(kept, AT + 1e12).past.gaps <= 100, 'nobody counts the segments of years');
  t.is(resumeFrom(kept, AT - 60_000).msn, resumeFrom(kept, AT).msn, 'the clock of another node may be behind');
});

test('a later time alone is not worth saving', (t) => {
  const [kept, later, further] = [
    toSavedState('AbCdEfGh', PROGRESS, GROWING, []),
    toSavedState('AbCdEfGh', PROGRESS, { ...GROWING, at: AT + 1 }, []),
    toSavedState('AbCdEfGh', { ...PROGRESS, msn: 8 }, { ...GROWING, at: AT + 1 }, []),
  ];
  if (kept === undefined || later === undefined || further === undefined) return t.fail();
  t.false(isWorthSaving(later, kept));
  t.true(isWorthSaving(further, kept));
});

test('a segment that begins in its time is not worth saving: the next owner counts as far without it', (t) => {
  const at = (msn: number, seconds: number, facts = GROWING) =>
    toSavedState('AbCdEfGh', { ...PROGRESS, msn }, { ...facts, at: AT + 1000 * seconds }, []) as SavedPlaylistState;
  const kept = at(7, 0);
  const next = at(8, 2);
  t.false(isWorthSaving(next, kept));
  for (const seconds of [2, 2.001, 3, 4, 4.5, 60]) {
    const now = AT + 1000 * seconds;
    t.is(resumeFrom(kept, now).msn, resumeFrom(next, now).msn);
    t.deepEqual(
      resumeFrom(kept, now).past.inits,
      new Map([...resumeFrom(next, now).past.inits].map(([id, n]) => [id, n + 1])),
    );
    const firstGap = ({ msn, past }: ReturnType<typeof resumeFrom>): number => msn - past.gaps;
    t.true(firstGap(resumeFrom(kept, now)) <= firstGap(resumeFrom(next, now)), 'players find the way as well');
  }
  const later = { ...GROWING, at: AT + 2000 };
  t.true(isWorthSaving(at(8, 1), kept), 'one that began early');
  t.true(isWorthSaving(at(9, 4), kept), 'the one after it');
  t.true(isWorthSaving(at(8, 2, COMPLETE), kept), 'the last one');
  t.true(
    isWorthSaving(
      toSavedState('AbCdEfGh', { ...PROGRESS, msn: 8, discontinuities: 3 }, later, []) as SavedPlaylistState,
      kept,
    ),
  );
  t.true(
    isWorthSaving(toSavedState('AbCdEfGh', { ...PROGRESS, msn: 8 }, later, ['kicked']) as SavedPlaylistState, kept),
  );
});

test('a stream that has not begun has nothing to continue', (t) => {
  t.is(toSavedState('AbCdEfGh', { msn: -1, discontinuities: -1, inits: new Map() }, GROWING, []), undefined);
});

test('a saved state of another version is not trusted', (t) => {
  const kept = toSavedState('AbCdEfGh', PROGRESS, COMPLETE, []);
  for (const wrong of [
    undefined,
    null,
    'text',
    [],
    {},
    { ...kept, run: '../../evil' },
    { ...kept, run: 7 },
    { ...kept, msn: -1 },
    { ...kept, msn: 1e300 },
    { ...kept, msn: '7' },
    { ...kept, inits: [[0]] },
    { ...kept, inits: { 0: 1 } },
    { ...kept, discontinuities: undefined },
    { ...kept, kicked: [7] },
    { ...kept, at: undefined },
    { ...kept, at: 1e300 },
    { ...kept, segmentDuration: 0 },
    { ...kept, segmentDuration: '2' },
  ])
    t.is(readSavedState(wrong), undefined, JSON.stringify(wrong));
});
