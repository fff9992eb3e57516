import test from 'ava';
import { checkSchedulePatch } from '../../../../../src/channels/scheduled/check.ts';
import { readCalendarPrograms } from '../../../../../src/channels/scheduled/upload/calendar.ts';
import { UploadError } from '../../../../../src/channels/scheduled/upload/upload-error.ts';
import { seeded } from '../../../codecs/vectors.ts';

const NOW = Date.UTC(2026, 2, 25, 12);
const EMPTY = {
  stream: { bypassTranscoder: false, videoTrack: true, audioTrack: true, audioMap: [], errorToleranceDurationMs: 500 },
  programs: [],
};
/** As Outlook describes it. */
const OUTLOOK_ZONE = [
  'BEGIN:VTIMEZONE',
  'TZID:W. Europe Standard Time',
  'BEGIN:STANDARD',
  'DTSTART:16010101T030000',
  'TZOFFSETFROM:+0200',
  'TZOFFSETTO:+0100',
  'RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10',
  'END:STANDARD',
  'BEGIN:DAYLIGHT',
  'DTSTART:16010101T020000',
  'TZOFFSETFROM:+0100',
  'TZOFFSETTO:+0200',
  'RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3',
  'END:DAYLIGHT',
  'END:VTIMEZONE',
];

function calendar(...lines: string[]): string {
  return ['BEGIN:VCALENDAR', 'VERSION:2.0', ...lines, 'END:VCALENDAR', ''].join('\r\n');
}

function event(...lines: string[]): string[] {
  const url = lines.some((line) => /^(?:URL|ATTACH)/i.test(line)) ? [] : ['URL:file://a'];
  return ['BEGIN:VEVENT', ...lines, ...url, 'END:VEVENT'];
}

/** When programs begin, without the parts of times that are all zero. */
function times(...lines: string[]): string[] {
  return readCalendarPrograms(calendar(...lines), NOW).programs.map(({ scheduled }) =>
    scheduled.replace(':00.000Z', ''),
  );
}

test('each event of a calendar is a program', (t) => {
  const { programs, until } = readCalendarPrograms(
    calendar(
      ...event(
        'UID:1',
        'SUMMARY:News\\, weather\\nand a very long',
        '  title',
        'DTSTART:20260326T190000Z',
        'DTEND:20260326T191500Z',
        'URL:stream://default/app/news',
        'BEGIN:VALARM',
        'DTSTART:nonsense',
        'END:VALARM',
      ),
      ...event(
        'SUMMARY:Film',
        'DTSTART:20260326T191500',
        'DURATION:PT1H30M',
        'ATTACH;FMTTYPE=video/mp4:file://film.mp4',
      ),
      ...event('DTSTART:20260327T000000Z', 'ATTACH:file://one', 'ATTACH:file://two', 'DTEND:20260327T010000Z'),
      ...event('DTSTART;VALUE=DATE:20260328', 'url:file://day'),
      'BEGIN:VTODO',
      'SUMMARY:no program',
      'END:VTODO',
    ),
    NOW,
  );
  t.is(until, undefined);
  t.deepEqual(programs, [
    {
      name: 'News, weather\nand a very long title',
      scheduled: '2026-03-26T19:00:00.000Z',
      repeat: false,
      items: [{ url: 'stream://default/app/news', duration: 900_000 }],
    },
    {
      name: 'Film',
      scheduled: '2026-03-26T19:15:00.000Z',
      repeat: false,
      items: [{ url: 'file://film.mp4', duration: 5_400_000 }],
    },
    {
      name: '',
      scheduled: '2026-03-27T00:00:00.000Z',
      repeat: false,
      items: [
        { url: 'file://one', duration: -1 },
        { url: 'file://two', duration: -1 },
      ],
    },
    {
      name: '',
      scheduled: '2026-03-28T00:00:00.000Z',
      repeat: false,
      items: [{ url: 'file://day', duration: -1 }],
    },
  ]);
  t.true(checkSchedulePatch(EMPTY, JSON.parse(JSON.stringify({ programs })), NOW).ok);
});

test('a day of DURATION is one of the calendar, an hour is exact, and DTEND makes all occurrences as long as the first', (t) => {
  const hours = (...lines: string[]): number[] => {
    const { programs } = readCalendarPrograms(
      calendar(
        ...event('DTSTART;TZID=Europe/Berlin:20260327T120000', 'RRULE:FREQ=DAILY;COUNT=3', 'URL:file://a', ...lines),
      ),
      NOW,
    );
    return programs.map(({ items: [item] }) => Number(item?.duration) / 3_600_000);
  };
  // clocks are set forward in the night to the 29th
  t.deepEqual(hours('DURATION:P1D'), [24, 23, 24]);
  t.deepEqual(hours('DURATION:P1DT2H'), [26, 25, 26]);
  t.deepEqual(hours('DURATION:P1W'), [167, 167, 168]);
  t.deepEqual(hours('DURATION:PT24H'), [24, 24, 24]);
  t.deepEqual(hours('DTEND;TZID=Europe/Berlin:20260328T120000'), [24, 24, 24]);
});

test('an event keeps its local time when clocks change', (t) => {
  const wanted = ['2026-03-27T19:15', '2026-03-28T19:15', '2026-03-29T18:15', '2026-03-30T18:15'];
  const daily = (zone: string): string[] => event(`DTSTART;TZID=${zone}:20260327T201500`, 'RRULE:FREQ=DAILY;COUNT=4');
  t.deepEqual(times(...daily('Europe/Berlin')), wanted);
  t.deepEqual(times(...daily('/freeassociation.sourceforge.net/Tzfile/Europe/Berlin')), wanted);
  t.deepEqual(times(...OUTLOOK_ZONE, ...daily('W. Europe Standard Time')), wanted);
  t.deepEqual(times(...OUTLOOK_ZONE, ...daily('"W. Europe Standard Time"')), wanted);
});

test('a local time that clocks skip or show twice is as RFC 5545 has it, in named zones and described ones', (t) => {
  for (const zone of ['Europe/Berlin', 'W. Europe Standard Time']) {
    const at = (local: string): string[] => times(...OUTLOOK_ZONE, ...event(`DTSTART;TZID=${zone}:${local}`));
    t.deepEqual(at('20260329T015959'), ['2026-03-29T00:59:59.000Z']);
    t.deepEqual(at('20260329T023000'), ['2026-03-29T01:30'], 'skipped');
    t.deepEqual(at('20260329T030000'), ['2026-03-29T01:00']);
    t.deepEqual(at('20261025T023000'), ['2026-10-25T00:30'], 'shown twice');
    t.deepEqual(at('20261025T030000'), ['2026-10-25T02:00']);
    t.deepEqual(at('20260701T120000'), ['2026-07-01T10:00']);
    t.deepEqual(at('20261201T120000'), ['2026-12-01T11:00']);
  }
  t.deepEqual(times(...event('DTSTART;TZID=Asia/Kathmandu:20260401T120000')), ['2026-04-01T06:15']);
  t.deepEqual(times(...event('DTSTART;TZID=America/New_York:20260401T120000Z')), ['2026-04-01T12:00'], 'Z wins');
});

test('rules of a described zone hold until their end', (t) => {
  const zone = OUTLOOK_ZONE.map((line) => (line.startsWith('RRULE') ? `${line};UNTIL=20101231T000000Z` : line));
  t.deepEqual(times(...zone, ...event('DTSTART;TZID=W. Europe Standard Time:20260701T120000')), ['2026-07-01T11:00']);
});

test('events recur daily or weekly', (t) => {
  const recur = (rule: string, start = '20260326T120000Z', ...more: string[]): string[] =>
    times(...event(`DTSTART:${start}`, `RRULE:${rule}`, ...more)).map((time) => time.slice(5, 10));
  t.deepEqual(recur('FREQ=DAILY;COUNT=3'), ['03-26', '03-27', '03-28']);
  t.deepEqual(recur('FREQ=DAILY;INTERVAL=10;UNTIL=20260416T120000Z'), ['03-26', '04-05', '04-15']);
  t.deepEqual(recur('FREQ=DAILY;UNTIL=20260327'), ['03-26', '03-27']);
  t.deepEqual(recur('FREQ=DAILY;BYDAY=SA,SU;COUNT=3'), ['03-26', '03-28', '03-29'], 'the first is one in any case');
  t.deepEqual(recur('FREQ=WEEKLY;COUNT=3'), ['03-26', '04-02', '04-09']);
  t.deepEqual(recur('FREQ=WEEKLY;BYDAY=TH,MO;COUNT=4'), ['03-26', '03-30', '04-02', '04-06']);
  t.deepEqual(recur('FREQ=WEEKLY;INTERVAL=2;BYDAY=TH,SU;WKST=MO;COUNT=4'), ['03-26', '03-29', '04-09', '04-12']);
  t.deepEqual(recur('FREQ=WEEKLY;INTERVAL=2;BYDAY=TH,SU;WKST=SU;COUNT=4'), ['03-26', '04-05', '04-09', '04-19']);
  t.deepEqual(recur('FREQ=DAILY;COUNT=5', '20260326T120000Z', 'EXDATE:20260327T120000Z,20260328T120000Z'), [
    '03-26',
    '03-29',
    '03-30',
  ]);
  const old = recur('FREQ=DAILY', '20200101T120000Z');
  t.is(old[0], '03-25', 'the one that runs');
  t.is(old.length, 92);
  t.deepEqual(recur('FREQ=DAILY;COUNT=5', '20200101T120000Z'), [], 'all of it is over');
});

test('an occurrence may be replaced by another event or a cancellation', (t) => {
  t.deepEqual(
    times(
      ...event('UID:a', 'DTSTART:20260326T120000Z', 'RRULE:FREQ=DAILY;COUNT=4'),
      ...event('UID:a', 'RECURRENCE-ID:20260327T120000Z', 'DTSTART:20260327T150000Z'),
      ...['BEGIN:VEVENT', 'UID:a', 'RECURRENCE-ID:20260328T120000Z', 'DTSTART:20260328T120000Z'],
      ...['STATUS:CANCELLED', 'END:VEVENT'],
      ...event('UID:b', 'RECURRENCE-ID:20260329T120000Z', 'DTSTART:20260330T120000Z'),
    ),
    ['2026-03-26T12:00', '2026-03-27T15:00', '2026-03-29T12:00', '2026-03-30T12:00'],
  );
});

test('occurrences of a calendar are kept up to the limit of a schedule, without a gap', (t) => {
  const lines = Array.from({ length: 900 }, (_, n) => {
    const time = new Date(Date.UTC(2026, 2, 20) + n * 60_000).toISOString().replaceAll(/[-:]|\.\d+/g, '');
    return event(
      `DTSTART;TZID=${n % 2 === 0 ? 'Asia/Tokyo' : 'America/Los_Angeles'}:${time.slice(0, -1)}`,
      'RRULE:FREQ=DAILY',
    );
  }).flat();
  const { programs, until = 0 } = readCalendarPrograms(calendar(...lines), Date.UTC(2026, 2, 19));
  t.true(programs.length > 1500 && programs.length < 4096, String(programs.length));
  t.true(programs.every(({ scheduled }) => Date.parse(scheduled) < until));
  const lastDay = programs.filter(({ scheduled }) => Date.parse(scheduled) >= until - 86_400_000);
  t.is(lastDay.length, 900);
});

test('a fault in a calendar is reported with its line', (t) => {
  const start = 'DTSTART:20260326T120000Z';
  for (const [lines, wanted] of [
    [event('SUMMARY:x'), 'line 3, column 1: the event has no DTSTART'],
    [['BEGIN:VEVENT', start, 'END:VEVENT'], 'line 3, column 1: the event has neither URL nor ATTACH'],
    [event(start, 'URL:http://host/a'), 'line 5, column 1: "http://host/a" is not file:// and a path'],
    [event('DTSTART:20260230T120000Z'), 'line 4, column 1: DTSTART: "20260230T120000Z" is not a date and time'],
    [event(start, start), 'line 5, column 1: DTSTART is there twice'],
    [event(start, 'DTEND:20260326T120000Z'), 'line 5, column 1: the event ends before it has begun'],
    [event(start, 'DURATION:-PT5M'), 'line 5, column 1: DURATION: "-PT5M" is not a length of time'],
    [event(start, 'RRULE:FREQ=MONTHLY'), 'line 5, column 1: RRULE: FREQ=MONTHLY is not possible here'],
    [event(start, 'RRULE:FREQ=DAILY;BYHOUR=5'), 'line 5, column 1: RRULE: "BYHOUR=5" is not possible here: only FREQ'],
    [event(start, 'RRULE:FREQ=WEEKLY;BYDAY=1MO'), 'line 5, column 1: RRULE: BYDAY=1MO is not possible here'],
    [event(start, 'RRULE:FREQ=DAILY;INTERVAL=0'), 'line 5, column 1: RRULE: INTERVAL=0 is not possible here'],
    [event(start, 'RRULE:FREQ=DAILY;COUNT=9999'), 'line 5, column 1: RRULE: COUNT=9999 is not possible here'],
    [event('DTSTART;TZID=Nowhere:20260326T120000'), 'line 4, column 1: the zone "Nowhere" is not known'],
    [event('SUMMARY;X=:a', start, 'DTEND;VALUE'), 'line 6, column 6: a colon is missing here'],
    [event(start, ' continued', '?'), 'line 6, column 1: the line does not begin with a name'],
    [['END:VEVENT'], 'line 3, column 1: END:VCALENDAR is missing before "END:VEVENT"'],
    [['BEGIN:VEVENT'], 'line 4, column 1: END:VEVENT is missing before "END:VCALENDAR"'],
    [
      [...event(start), ...event(start)],
      'line 7, column 1: the event on line 3 begins at the same time: 2026-03-26T12:00',
    ],
  ] as const) {
    const error = t.throws(() => readCalendarPrograms(calendar(...lines), NOW), { instanceOf: UploadError });
    t.is(error.message.slice(0, wanted.length), wanted);
  }
  for (const text of ['', 'BEGIN:VEVENT\nEND:VEVENT', 'X:y', `${calendar()}BEGIN:VCALENDAR`, '<Schedule/>'])
    t.throws(() => readCalendarPrograms(text, NOW), { instanceOf: UploadError });
  t.regex(t.throws(() => readCalendarPrograms('BEGIN:VCALENDAR\n', NOW)).message, /^line 1, column 1: .* has no end$/);
});

/** Changes of the clocks, each in a year of its own. */
function longZone(count: number): string[] {
  const changes = Array.from({ length: count }, (_, n) => [
    'BEGIN:STANDARD',
    `DTSTART:${1500 + n}0101T000000`,
    `TZOFFSETFROM:+0${n % 10}00`,
    `TZOFFSETTO:+0${(n + 1) % 10}00`,
    'END:STANDARD',
  ]);
  return ['BEGIN:VTIMEZONE', 'TZID:long', ...changes.flat(), 'END:VTIMEZONE'];
}

test('a zone whose clocks were set often is read quickly, whatever recurs in it', (t) => {
  const lines = Array.from({ length: 900 }, (_, n) => {
    const minute = `${String(Math.floor(n / 60)).padStart(2, '0')}${String(n % 60).padStart(2, '0')}00`;
    return event(`DTSTART;TZID=long:20260320T${minute}`, 'RRULE:FREQ=DAILY');
  });
  const zone = longZone(500);
  t.true(readCalendarPrograms(calendar(...zone, ...lines.flat()), Date.UTC(2026, 2, 19)).programs.length > 2000);
  const [at] = times(...longZone(500), ...event('DTSTART;TZID=long:20260601T120000'));
  t.is(at, '2026-06-01T12:00', 'the last one set them to UTC');
  const tooLong = () =>
    readCalendarPrograms(calendar(...longZone(501), ...event('DTSTART;TZID=long:20260601T120000')), NOW);
  t.regex(t.throws(tooLong).message, /^line 2505, column 1: the zone has more than 500 changes of its clocks$/);
});

test('the number of dates that a calendar excludes is limited', (t) => {
  const dates = Array.from({ length: 10_001 }, () => '20260327T120000Z').join(',');
  const excluding = () => readCalendarPrograms(calendar(...event('DTSTART:20260326T120000Z', `EXDATE:${dates}`)), NOW);
  t.regex(t.throws(excluding).message, /^line 5, column 1: the calendar has more than 10000 dates in EXDATE$/);
});

test('any text is read as iCalendar or refused with a place', (t) => {
  const random = seeded(5545);
  const below = (limit: number): number => Math.floor(random() * limit);
  const sample = calendar(
    ...OUTLOOK_ZONE,
    ...event(
      'UID:1',
      'SUMMARY:a',
      'DTSTART;TZID=W. Europe Standard Time:20260326T120000',
      'RRULE:FREQ=WEEKLY;BYDAY=TH,MO;COUNT=4',
    ),
    ...event(
      'DTSTART;TZID=Europe/Berlin:20260101T130000',
      'DURATION:PT1H',
      'RRULE:FREQ=DAILY;INTERVAL=3;UNTIL=20260501',
    ),
    ...event('UID:1', 'RECURRENCE-ID:20260330T110000Z', 'DTSTART:20260330T120000Z', 'DTEND:20260330T130000Z'),
  );
  const words = ['\r\n', ';', ':', ',', '=', '"', 'BEGIN:', 'END:', '9', '0', '-', 'T', 'Z', ' ', 'DAILY', '\\n', '\0'];
  let whole = 0;
  for (let round = 0; round < 10_000; round++) {
    let text = sample;
    for (let change = below(4); change > 0; change--) {
      const at = below(text.length);
      text = text.slice(0, at) + words[below(words.length)] + text.slice(at + below(round % 4 === 0 ? 80 : 3));
    }
    try {
      const { programs } = readCalendarPrograms(text, NOW);
      const checked = checkSchedulePatch(EMPTY, JSON.parse(JSON.stringify({ programs })), NOW);
      if (!checked.ok) t.fail(`${JSON.stringify(checked.problems)} of ${text}`);
      whole++;
    } catch (error) {
      if (!(error instanceof UploadError)) throw error;
    }
  }
  t.true(whole > 500 && whole < 9500, String(whole));
});
