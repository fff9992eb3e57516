import test from 'ava';
import { checkSchedulePatch } from '../../../../../src/channels/scheduled/check.ts';
import { readCsvPrograms } from '../../../../../src/channels/scheduled/upload/csv.ts';
import { UploadError } from '../../../../../src/channels/scheduled/upload/upload-error.ts';
import { seeded } from '../../../codecs/vectors.ts';

const SAMPLE = [
  'program,scheduled,repeat,url,start,duration,fallbackOnErr',
  'News,2999-01-01T20:00:00+01:00,true,file://news.mp4,0,60000,false',
  ',,,stream://default/app/live,,30000,',
  '"Film, ""long""',
  'and old",2999-01-01T21:00:00,,"file://a%20b.mp4",5000,-1,TRUE',
  '',
].join('\r\n');
const EMPTY = {
  stream: { bypassTranscoder: false, videoTrack: true, audioTrack: true, audioMap: [], errorToleranceDurationMs: 500 },
  programs: [],
};

test('each line of CSV is an item, of the program before unless it has a time', (t) => {
  const programs = readCsvPrograms(SAMPLE);
  t.deepEqual(programs, [
    {
      name: 'News',
      scheduled: '2999-01-01T20:00:00+01:00',
      repeat: true,
      items: [
        { url: 'file://news.mp4', start: 0, duration: 60_000, fallbackOnErr: false },
        { url: 'stream://default/app/live', start: 0, duration: 30_000, fallbackOnErr: true },
      ],
    },
    {
      name: 'Film, "long"\r\nand old',
      scheduled: '2999-01-01T21:00:00',
      repeat: false,
      items: [{ url: 'file://a%20b.mp4', start: 5000, duration: -1, fallbackOnErr: true }],
    },
  ]);
  const checked = checkSchedulePatch(EMPTY, JSON.parse(JSON.stringify({ programs })), 0);
  t.true(checked.ok);
  t.deepEqual(readCsvPrograms(`\uFEFF${SAMPLE.replaceAll('\r\n', '\n')}`)[0], programs[0]);
});

test('columns may come in any order, and most of them may be missing', (t) => {
  t.deepEqual(readCsvPrograms('URL,Scheduled\nfile://a,2999-01-01T00:00:00Z\nfile://b,2999-01-01T00:00:00Z'), [
    {
      name: '',
      scheduled: '2999-01-01T00:00:00Z',
      repeat: false,
      items: ['file://a', 'file://b'].map((url) => ({
        url,
        start: 0,
        duration: -1,
        fallbackOnErr: true,
      })),
    },
  ]);
  t.deepEqual(readCsvPrograms('url,scheduled\r\n\r\n'), []);
});

test('a fault in a CSV schedule is reported with its line and column', (t) => {
  const head = 'program,scheduled,url,duration,repeat\n';
  for (const [text, wanted] of [
    ['', 'line 1, column 1: the line with the names of the columns is missing'],
    ['url\n', 'line 1, column 1: the column scheduled is missing'],
    ['url,when', 'line 1, column 5: "when" is none of '],
    ['url,scheduled,URL', 'line 1, column 15: url is there twice'],
    [`${head}a,2999-02-30T00:00:00Z,file://a,,`, 'line 2, column 3: "2999-02-30T00:00:00Z" is not a date and time'],
    [`${head}a,,file://a,,`, 'line 2, column 3: "" is not a date and time'],
    [`${head}"a\nb",2999-01-01T00:00:00Z,a.mp4,,`, 'line 3, column 25: "a.mp4" is not file:// and a path'],
    [`${head}a,2999-01-01T00:00:00Z,file://a,1s,`, 'line 2, column 33: "1s" is not a number of milliseconds of'],
    [`${head}a,2999-01-01T00:00:00Z,file://a,-2,`, 'line 2, column 33: "-2" is not a number of milliseconds of'],
    [`${head}a,2999-01-01T00:00:00Z,file://a,,yes`, 'line 2, column 34: "yes" is not true or false'],
    [`${head}a,2999-01-01T00:00:00Z,file://a`, 'line 2, column 1: the line has 3 fields, not 5 as the first one'],
    [`${head}"a" ,2999`, 'line 2, column 4: a comma or the end of the line is missing here'],
    [`${head}"a,2999`, 'line 2, column 1: the quotation has no end'],
    [`${head}a"b,2999`, 'line 2, column 2: a comma or the end of the line is missing here'],
    [
      `${head}a,2999-01-01T00:00:00Z,file://a,,\nb,2999-01-02T00:00:00Z,file://a,,\na,2999-01-01T01:00:00+01:00,file://a,,`,
      'line 4, column 3: another program begins at 2999-01-01T01:00:00+01:00',
    ],
    [' '.repeat(1024 * 1024 + 1), 'line 1, column 1: the text has more than 1048576 characters'],
  ] as const) {
    const error = t.throws(() => readCsvPrograms(text), { instanceOf: UploadError });
    t.is(error.message.slice(0, wanted.length), wanted);
  }
});

test('any text is read as CSV or refused with a place', (t) => {
  const random = seeded(4180);
  const below = (limit: number): number => Math.floor(random() * limit);
  const words = [',', '"', '\n', '\r\n', '""', '-1', 'true', '2999-01-01T00:00:00Z', 'file://', ' ', '\0', 'é'];
  let whole = 0;
  for (let round = 0; round < 10_000; round++) {
    let text = SAMPLE;
    for (let change = below(4); change > 0; change--) {
      const at = below(text.length);
      text = text.slice(0, at) + words[below(words.length)] + text.slice(at + below(round % 3 === 0 ? 60 : 3));
    }
    try {
      const programs = readCsvPrograms(text);
      const checked = checkSchedulePatch(EMPTY, JSON.parse(JSON.stringify({ programs })), 0);
      if (!checked.ok) t.fail(JSON.stringify(checked.problems));
      whole++;
    } catch (error) {
      if (!(error instanceof UploadError)) throw error;
    }
  }
  t.true(whole > 500 && whole < 9500, String(whole));
});

test('a line of very many fields is refused', (t) => {
  const error = t.throws(() => readCsvPrograms(`scheduled,url\n${','.repeat(1_000_000)}`), { instanceOf: UploadError });
  t.is(error.message, 'line 2, column 101: the line has more than 100 fields');
});

test('a text of another encoding is refused with the place of its first odd character', (t) => {
  const csv = 'scheduled,program,url\n2099-01-01T00:00:00Z,Müller,file://a\n';
  for (const [encoding, place] of [
    ['latin1', 'line 2, column 23'],
    ['utf16le', 'line 1, column 1'],
  ] as const) {
    const bytes = Buffer.concat([Buffer.from(encoding === 'utf16le' ? [0xff, 0xfe] : []), Buffer.from(csv, encoding)]);
    const error = t.throws(() => readCsvPrograms(bytes.toString('utf8')), { instanceOf: UploadError });
    t.is(error.message, `${place}: the text is not encoded as UTF-8`);
  }
  t.is(readCsvPrograms(`\uFEFF${csv}`)[0]?.name, 'Müller');
});
