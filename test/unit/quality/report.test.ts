import test from 'ava';
import { carriedReport } from '../../../src/quality/carried-report.ts';
import { MAX_REPORT, readReport, type Report } from '../../../src/quality/report.ts';
import { PLAYER_REPORTS } from '../../support/quality/player-reports.ts';
import { Random } from '../../soak/random.ts';

/** Keys of a report that it has. */
function keysOf(report: Report | undefined): object | undefined {
  return report && Object.fromEntries(Object.entries(report).filter(([, value]) => value !== undefined));
}

for (const { title, query = '', headers = {}, report } of PLAYER_REPORTS)
  test(`a report is read as ${title} sends it`, (t) => {
    const text = carriedReport(query, headers) ?? '';
    t.deepEqual(keysOf(readReport(text)), { bs: false, ...report });
    for (let length = 0; length < text.length; length++) t.notThrows(() => readReport(text.slice(0, length)));
  });

test('numbers of several objects: the greatest bitrate, the shortest buffer, the longest starvation', (t) => {
  const text =
    'v=2,br=(128;a 5000;v),tb=(8000),bl=(2500;v 900;a),bsd=(120;a 800;v),bsa=(1 2),nor=("a,(b);c=d";r="0-9"),com.x-y=3';
  t.deepEqual(keysOf(readReport(text)), { br: 5000, tb: 8000, bl: 900, bsd: 800, bs: false });
});

test('strings may contain what separates members', (t) => {
  const text = String.raw`cid="a,b=c;d\"e\\",sid="x\"y",br=5`;
  t.deepEqual(keysOf(readReport(text)), { sid: 'x"y', br: 5, bs: false });
});

test('values of another type or beyond belief are skipped, and the rest is read', (t) => {
  for (const text of [
    'br',
    'br=x',
    'br="5"',
    'br=-5',
    'br=99999999999',
    'br=()',
    'br=(a b)',
    'sid=x',
    'bs=?0',
    'br=1e3',
  ])
    t.deepEqual(keysOf(readReport(`${text},msd=7`)), { msd: 7, bs: false }, text);
  t.is(readReport(`sid="${'x'.repeat(500)}"`)?.sid?.length, 64);
});

test('malformed reports are no reports', (t) => {
  const texts = [
    '',
    ',',
    'a=',
    '=1',
    'a=1,',
    ',a=1',
    'a=1,,b',
    'a="',
    'a="b',
    'a=(',
    'a=(1',
    'a=1)',
    'a b',
    '1a=2',
    'a==1',
    'ä=1',
  ];
  for (const text of [...texts, 'a=1\r\nb=2', `a="${'x'.repeat(MAX_REPORT)}"`, Array(200).fill('a').join(',')])
    t.is(readReport(text), undefined, text.slice(0, 40));
});

test('random and mutated text is read or rejected, never an error', (t) => {
  const random = new Random(5);
  const pieces = [
    'br',
    '=',
    '(',
    ')',
    '"',
    '\\',
    ',',
    ';',
    ' ',
    '1',
    '-',
    '.',
    '?1',
    '%',
    'sid',
    '\u0000',
    'é',
    'v',
    ':',
    '@',
  ];
  for (let round = 0; round < 20_000; round++) {
    let text = random.chance(0.5) ? 'br=(5;v 1;a),sid="a",bs,su;x=1,ot=v' : '';
    for (let count = random.below(12); count > 0; count--) {
      const at = random.below(text.length + 1);
      text = text.slice(0, at) + random.pick(pieces) + text.slice(at + random.below(3));
    }
    const report = readReport(text);
    if (report !== undefined) for (const value of [report.br, report.tb, report.dfa]) t.false(Number.isNaN(value));
  }
  // text on which a careless pattern would take exponential time
  for (const text of [
    'a=("'.repeat(1000),
    `a=${'('.repeat(4000)}`,
    `a=(${'"" '.repeat(1300)}`,
    `a${';b'.repeat(2000)}!`,
    `a="${'\\"'.repeat(2000)}`,
  ])
    t.is(readReport(text), undefined);
});
