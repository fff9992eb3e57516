import { mkdtempSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { localTime } from '../../src/lib/local-time.ts';
import { writeSchedule } from '../../src/channels/files/write-schedule.ts';
import { checkSchedule } from '../../src/channels/scheduled/check.ts';
import { openChannelApi } from '../support/channels/channels.ts';
import { until } from '../support/time/until.ts';
import { MULTIPLEX } from '../unit/channels/files/samples.ts';
import { RTMP, VIDEO } from '../unit/core/support.ts';

const LIST = 'app/scheduledChannels';
const ONE = `${LIST}/tv`;
const CREATED = { message: 'Created', statusCode: 201 };
const OK = { message: 'OK', statusCode: 200 };
const MISSING = { message: 'Could not find the application or stream (404)', statusCode: 404 };
const error = (statusCode: number, text: string) => ({ message: `[HTTP] ${text} (${statusCode})`, statusCode });

const STREAM = { name: 'tv', bypassTranscoder: false, videoTrack: true, audioTrack: true };
const ITEM = { url: 'file://sample.mp4', start: 0, duration: 60_000 };
const FALLBACK = { items: [{ url: 'file://hevc.mov', start: 0, duration: 60_000 }, { url: 'file://avc.mov' }] };
const PROGRAMS = [
  { name: '1', scheduled: '2099-11-28T16:10:00.000+09:00', repeat: true, items: [ITEM, ITEM] },
  { name: '2', scheduled: '2099-11-29T00:00:00', items: [ITEM] },
];
const CHANNEL = { stream: STREAM, fallbackProgram: FALLBACK, programs: PROGRAMS };

const shownItem = { url: 'file://hevc.mov', start: 0, duration: 60_000, fallbackOnErr: true, forwardData: false };
const DETAIL = {
  stream: { ...STREAM, errorToleranceDurationMs: 500 },
  fallbackProgram: {
    name: 'fallback',
    repeat: true,
    scheduled: '1970-01-01T00:00:00Z',
    items: [shownItem, { ...shownItem, url: 'file://avc.mov', duration: -1 }],
  },
  programs: [
    { name: '1', repeat: true, scheduled: localTime(Date.parse('2099-11-28T07:10:00Z')) },
    { name: '2', repeat: false, scheduled: localTime(Date.parse('2099-11-29T00:00:00Z')) },
  ],
  currentProgram: { state: 'offair' },
};

test('a channel is created, listed, shown, changed and deleted', async (t) => {
  const { call, scheduled } = await openChannelApi(t);
  t.deepEqual((await call('GET', LIST)).body, { ...OK, response: [] });
  t.like(await call('POST', LIST, CHANNEL), { status: 201, body: CREATED });
  t.deepEqual((await call('GET', LIST)).body, { ...OK, response: ['tv'] });
  t.deepEqual((await call('GET', ONE)).body, { ...OK, response: DETAIL });
  const task = await until('it runs', () => scheduled.running.get('tv'));
  const [program] = PROGRAMS;
  const patched = await call('PATCH', ONE, { programs: [{ ...program, name: 'new' }] });
  t.is(patched.status, 201);
  t.like(patched.body, CREATED);
  await until('the run has heard', () => scheduled.heard.length === 1);
  t.like(scheduled.heard[0], { programs: [{ name: 'new' }], fallbackProgram: { items: DETAIL.fallbackProgram.items } });
  t.false(task.signal.aborted);
  const programs = [{ ...DETAIL.programs[0], name: 'new' }];
  t.deepEqual((await call('GET', ONE)).body, { ...OK, response: { ...DETAIL, programs } });
  t.like((await call('PATCH', ONE, { fallbackProgram: { items: [] } })).body, CREATED);
  const { fallbackProgram: _, ...without } = { ...DETAIL, programs };
  t.deepEqual((await call('GET', ONE)).body, { ...OK, response: without });
  t.deepEqual((await call('DELETE', ONE)).body, OK);
  t.is(scheduled.running.size, 0);
  for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
    const answer = await call(method, ONE, method === 'PATCH' ? {} : undefined);
    t.deepEqual([answer.status, answer.body], [404, MISSING], method);
  }
});

test('the answer that describes a scheduled channel creates one like it', async (t) => {
  const { call } = await openChannelApi(t);
  await call('POST', LIST, { ...CHANNEL, stream: { ...STREAM, audioMap: [{ name: 'en', language: 'eng' }] } });
  const { response } = (await call('GET', ONE)).body as { response: typeof CHANNEL };
  const again = { ...response, stream: { ...response.stream, name: 'again' }, programs: PROGRAMS };
  t.is((await call('POST', LIST, again)).status, 201);
  t.deepEqual((await call('GET', `${LIST}/again`)).body?.response, { ...response, stream: again.stream });
});

test('the current program is the one that the node plays', async (t) => {
  const { call, scheduled } = await openChannelApi(t);
  await call('POST', LIST, CHANNEL);
  await until('it runs', () => scheduled.running.has('tv'));
  const current = async () =>
    ((await call('GET', ONE)).body as { response: { currentProgram: unknown } }).response.currentProgram;
  const item = { url: 'file://sample.mp4', start: 1000, duration: 60_000, position: 42_068 };
  const program = { name: '1', scheduled: 1_700_000_000_000, ends: 1_700_000_120_000, repeat: true };
  scheduled.report = { program, item, fallback: false };
  const shown = {
    name: '1',
    scheduled: localTime(1_700_000_000_000),
    end: localTime(1_700_000_120_000),
    duration: 120_000,
    repeat: true,
    state: 'onair',
    currentItem: { url: 'file://sample.mp4', start: 1000, duration: 60_000, currentPosition: 42_068 },
  };
  t.deepEqual(await current(), shown);
  scheduled.report = { program, fallback: false };
  const { currentItem, ...waiting } = shown;
  t.deepEqual(await current(), { ...waiting, state: 'offair' });
  const { ends: _, ...endless } = program;
  scheduled.report = { program: endless, fallback: false };
  const { end, ...unending } = (await current()) as typeof waiting;
  t.regex(end, /^2262-04-12T08:47:16\.854[+-]\d\d:\d\d$/);
  const { end: __, ...withoutEnd } = waiting;
  t.deepEqual(unending, { ...withoutEnd, duration: -1, state: 'offair' });
  scheduled.report = { item, fallback: true };
  t.deepEqual(await current(), {
    name: 'fallback',
    repeat: true,
    scheduled: '1970-01-01T00:00:00Z',
    end,
    duration: -1,
    state: 'onair',
    currentItem,
  });
  scheduled.report = { program: { name: 'fallback', scheduled: 0, repeat: true }, item, fallback: true };
  t.like(await current(), { name: 'fallback', scheduled: '1970-01-01T00:00:00Z', duration: -1, state: 'onair' });
  scheduled.report = { program: { name: 'loop', scheduled: 0, repeat: true }, item, fallback: false };
  t.like(await current(), { name: 'loop', scheduled: localTime(0) });
  scheduled.report = { from: 'another version' };
  t.deepEqual(await current(), { state: 'offair' });
});

test('the stream of a channel cannot be changed', async (t) => {
  const { call } = await openChannelApi(t);
  await call('POST', LIST, CHANNEL);
  const answer = await call('PATCH', ONE, { stream: { name: 'other' }, programs: [] });
  t.deepEqual(answer.body, { message: '[HTTP] Cannot change [name] using this API (400)', statusCode: 400 });
  t.deepEqual((await call('GET', ONE)).body?.response, DETAIL);
});

const with_ = (more: object) => ({ ...CHANNEL, ...more });
const ofItem = (more: object) =>
  with_({
    programs: [...PROGRAMS, { ...PROGRAMS[0], scheduled: '2099-12-01T00:00:00Z', items: [{ ...ITEM, ...more }] }],
  });
const REFUSED: readonly (readonly [what: string, body: unknown, text: RegExp])[] = [
  ['that is a list', [], /^Request body must be an object$/],
  ['without a stream', { programs: [] }, /^stream: is missing$/],
  ['without a name', with_({ stream: {} }), /^stream\.name: is missing$/],
  ['with a name of a wrong type', with_({ stream: { name: {} } }), /^stream\.name: /],
  [
    'with a name that is no path segment',
    with_({ stream: { ...STREAM, name: 'a/b' } }),
    /^stream\.name: "a\/b" is not a name/,
  ],
  [
    'with neither kind of track',
    with_({ stream: { ...STREAM, videoTrack: false, audioTrack: false } }),
    /^stream: at least one of/,
  ],
  ['with an odd flag', with_({ stream: { ...STREAM, videoTrack: 'maybe' } }), /^stream\.videoTrack: /],
  [
    'with an odd audio map',
    with_({ stream: { ...STREAM, audioMap: [{}] } }),
    /^stream\.audioMap\[0\]\.name: is missing$/,
  ],
  ['with programs that are no list', with_({ programs: {} }), /^programs: /],
  [
    'with a time that is none',
    with_({ programs: [{ ...PROGRAMS[0], scheduled: 'tomorrow' }] }),
    /^programs\[0\]\.scheduled: "tomorrow" is not a date/,
  ],
  ['with a program without items', with_({ programs: [{ ...PROGRAMS[0], items: [] }] }), /^programs\[0\]\.items: /],
  ['with two programs at once', with_({ programs: [PROGRAMS[0], PROGRAMS[0]] }), /^programs\[1\]\.scheduled: /],
  [
    'with a duration of a wrong type',
    ofItem({ duration: 'long' }),
    /^programs\[2\]\.items\[0\]\.duration: "long" is not an integer/,
  ],
  ['with a negative start', ofItem({ start: -5 }), /^programs\[2\]\.items\[0\]\.start: /],
  ['with a path out of the root', ofItem({ url: 'file://../secret' }), /^programs\[2\]\.items\[0\]\.url: /],
  [
    'with a scheme that nothing plays',
    ofItem({ url: 'https://example.com/a.mp4' }),
    /^programs\[2\]\.items\[0\]\.url: /,
  ],
  [
    'with an odd fallback',
    with_({ fallbackProgram: { items: [{ start: 1 }] } }),
    /^fallbackProgram\.items\[0\]\.url: is missing$/,
  ],
  [
    'with too many programs',
    with_({ programs: Array.from({ length: 5000 }, () => ({})) }),
    /^programs: has 5000 items/,
  ],
  [
    'with too many items',
    with_({ programs: [{ ...PROGRAMS[0], items: Array.from({ length: 5000 }, () => ITEM) }] }),
    /^programs\[0\]\.items: has 5000 items/,
  ],
];

test('a wrong definition of a scheduled channel is refused with the element that is', async (t) => {
  const { call } = await openChannelApi(t);
  for (const [what, body, text] of REFUSED) {
    const { status, body: answer } = await call('POST', LIST, body);
    t.is(status, 400, what);
    t.is(answer?.statusCode, 400);
    t.regex(/^\[HTTP\] (.*) \(400\)$/s.exec(answer?.message ?? '')?.[1] ?? '', text, what);
  }
  await call('POST', LIST, CHANNEL);
  const programs = [{ ...PROGRAMS[0], scheduled: 5 }];
  t.regex((await call('PATCH', ONE, { programs })).body?.message ?? '', /^\[HTTP\] programs\[0\]\.scheduled: /);
  t.deepEqual((await call('PATCH', ONE, [])).body, error(400, 'Request body must be an object'));
  t.deepEqual((await call('GET', LIST)).body?.response, ['tv']);
});

test('a name that any stream has is refused', async (t) => {
  const { call, registry, tasks } = await openChannelApi(t);
  const taken = (name: string) => error(409, `Stream '${name}' already exists`);
  const create = (name: string) => call('POST', LIST, { ...CHANNEL, stream: { ...STREAM, name } });
  await create('tv');
  t.deepEqual((await create('tv')).body, taken('tv'));
  const input = registry
    .vhost('default')
    .application('app')
    .publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  t.deepEqual((await create('live')).body, taken('live'));
  for (const kind of ['multiplex', 'pull']) {
    const name = { kind, vhost: 'default', app: 'app', id: kind };
    await tasks.definitions.create(name, { spec: {}, persistent: true, stored: false });
    t.deepEqual((await create(kind)).body, taken(kind));
  }
  t.is((await call('POST', 'other/scheduledChannels', CHANNEL)).status, 201, 'another application');
  const both = await Promise.all(['one', 'one'].map(create));
  t.deepEqual(both.map(({ status }) => status).sort(), [201, 409]);
  const pull = { name: 'tv', urls: ['rtsp://camera.example.com/live'] };
  t.deepEqual((await call('POST', 'app/streams', pull)).body, error(409, 'Stream already exists'));
});

test('an ordinary stream is no channel', async (t) => {
  const { call, registry } = await openChannelApi(t);
  const input = registry.vhost('default').application('app').publish('tv', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  t.deepEqual((await call('GET', ONE)).body, MISSING);
  t.deepEqual((await call('PATCH', ONE, {})).body, MISSING);
  t.deepEqual((await call('DELETE', ONE)).body, MISSING);
  t.deepEqual((await call('GET', 'app/streams')).body?.response, ['tv']);
});

test('paths that lead nowhere', async (t) => {
  const { call, raw } = await openChannelApi(t);
  const noApp = error(404, 'Could not find the application: [default/none]');
  t.deepEqual((await call('GET', 'none/scheduledChannels')).body, noApp);
  t.deepEqual((await call('POST', 'none/scheduledChannels', CHANNEL)).body, noApp);
  t.deepEqual((await call('GET', 'none/scheduledChannels/tv')).body, MISSING);
  const noVhost = error(404, 'Could not find the virtual host: [none]');
  for (const path of ['', '/tv'])
    t.deepEqual((await raw('GET', `/v1/vhosts/none/apps/app/scheduledChannels${path}`)).body, noVhost);
});

test('an application without a channel provider has no channels of its kind', async (t) => {
  const { call, tasks } = await openChannelApi(t);
  const calls = [
    ['GET', ''],
    ['POST', ''],
    ['GET', '/tv'],
    ['PATCH', '/tv'],
    ['DELETE', '/tv'],
  ] as const;
  for (const kind of ['scheduledChannels', 'multiplexChannels']) {
    for (const [method, path] of calls) {
      if (method === 'PATCH' && kind === 'multiplexChannels') continue;
      const { status, body } = await call(method, `bare/${kind}${path}`, method === 'GET' ? undefined : CHANNEL);
      t.deepEqual([status, body], [403, { message: 'Forbidden', statusCode: 403 }], `${method} ${kind}${path}`);
    }
  }
  const left = { kind: 'scheduled', vhost: 'default', app: 'bare', id: 'tv' };
  await tasks.definitions.create(left, { spec: {}, persistent: true, stored: false });
  t.deepEqual((await call('DELETE', 'bare/scheduledChannels/tv')).body, OK, 'one from before');
});

test('the channel goes with its stream', async (t) => {
  const { call, scheduled } = await openChannelApi(t);
  await call('POST', LIST, CHANNEL);
  await until('it runs', () => scheduled.running.has('tv'));
  t.deepEqual((await call('DELETE', 'app/streams/tv')).body, OK);
  t.deepEqual((await call('GET', LIST)).body?.response, []);
  t.is(scheduled.running.size, 0);
  t.is((await call('DELETE', 'app/streams/tv')).status, 404);
});

test('channels that play each other are refused, with their chain', async (t) => {
  const { call } = await openChannelApi(t);
  const playing = (name: string, ...urls: string[]) => ({
    stream: { ...STREAM, name },
    programs: [{ ...PROGRAMS[0], items: urls.map((url) => ({ url })) }],
  });
  const looped = (element: string, ...chain: string[]) =>
    error(400, `${element} makes the channel play itself: ${chain.map((name) => `default/app/${name}`).join(' -> ')}`);
  const first = 'programs[0].items[0].url';
  t.deepEqual((await call('POST', LIST, playing('a', 'stream://default/app/a'))).body, looped(first, 'a', 'a'));
  t.deepEqual(
    (await call('POST', LIST, playing('a', 'stream://default/app/a_copy'))).body,
    looped(first, 'a', 'a'),
    'by its output stream',
  );
  t.is((await call('POST', LIST, playing('c', 'stream://default/app/b', 'stream://default/other/c'))).status, 201);
  t.is((await call('POST', LIST, playing('b', 'file://a.mp4', 'stream://default/app/a_copy'))).status, 201);
  const answer = await call(
    'POST',
    LIST,
    playing('a', 'file://a.mp4', 'stream://default/app/live', 'stream://default/app/c'),
  );
  t.deepEqual(answer.body, looped('programs[0].items[2].url', 'a', 'c', 'b', 'a'));
  t.is((await call('POST', LIST, playing('a', 'stream://default/app/live'))).status, 201);
  const patched = await call('PATCH', `${LIST}/a`, { fallbackProgram: { items: [{ url: 'stream://default/app/b' }] } });
  t.deepEqual(patched.body, looped('fallbackProgram.items[0].url', 'a', 'b', 'a'));
  t.is((await call('GET', `${LIST}/a`)).status, 200);
});

test('a channel that a file defines is shown, changed and deleted with its file', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-channels-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const kind of ['sch', 'mux']) await mkdir(join(folder, kind));
  const { call, scheduled, multiplex, files } = await openChannelApi(t, folder);
  files.start();
  const path = join(folder, 'sch/tv.sch');
  const schedule = checkSchedule(CHANNEL, Date.now());
  if (!schedule.ok) return t.fail();
  await writeFile(path, writeSchedule('tv', schedule.value.spec));
  await writeFile(join(folder, 'mux/mux.mux'), MULTIPLEX);
  await until('both run', () => scheduled.running.has('tv') && multiplex.running.size === 1);
  const [list, one] = ['files/scheduledChannels', 'files/scheduledChannels/tv'];
  t.deepEqual((await call('GET', list)).body?.response, ['tv']);
  t.deepEqual((await call('GET', one)).body?.response, DETAIL);
  t.is((await call('POST', list, CHANNEL)).status, 409);
  t.like((await call('PATCH', one, { programs: [] })).body, CREATED);
  t.deepEqual((await call('GET', one)).body?.response, { ...DETAIL, programs: [] });
  t.regex(await readFile(path, 'utf8'), /<FallbackProgram>/);
  await until('the run has heard', () => scheduled.heard.length > 0);
  t.is((await call('POST', 'files/streams', { name: 'tv', urls: ['rtsp://camera.example.com/live'] })).status, 409);
  t.deepEqual((await call('DELETE', one)).body, OK);
  t.deepEqual(await readdir(join(folder, 'sch')), []);
  t.is((await call('GET', one)).status, 404);
  const [name] = multiplex.running.keys();
  t.deepEqual((await call('GET', 'files/multiplexChannels')).body?.response, [name]);
  t.like(await call('GET', `files/multiplexChannels/${name}`), { status: 200 });
  t.deepEqual((await call('DELETE', `files/streams/${name}`)).body, OK, 'with its stream');
  t.deepEqual(await readdir(join(folder, 'mux')), []);
});

const DAY = 86_400_000;

test('a schedule without a fault is answered exactly as the API has it', async (t) => {
  const { call } = await openChannelApi(t);
  const items = [{ url: 'stream://default/app/live' }];
  const programs = [{ name: 'now', scheduled: '2024-01-01T00:00:00Z', items }];
  t.deepEqual((await call('POST', LIST, { ...CHANNEL, programs })).body, CREATED);
  t.deepEqual((await call('PATCH', ONE, { programs })).body, CREATED);
});

test('gaps, overlaps and unreadable files of the next day are in the answer where that is asked for', async (t) => {
  const { call } = await openChannelApi(t);
  const at = (ms: number) => new Date(Math.ceil(Date.now() / 1000) * 1000 + ms).toISOString();
  const items = [{ url: 'file://none.mp4', duration: 7_200_000 }];
  const programs = [
    { name: 'one', scheduled: at(3_600_000), items },
    { name: 'two', scheduled: at(7_200_000), items },
    { name: 'later', scheduled: at(2 * DAY), items },
  ];
  t.deepEqual((await call('POST', LIST, { ...CHANNEL, programs })).body, CREATED);
  t.deepEqual((await call('PATCH', ONE, { programs })).body, CREATED);
  t.deepEqual((await call('PATCH', `${ONE}?problems=false`, { programs })).body, CREATED);
  t.is((await call('PATCH', `${ONE}?problems=perhaps`, { programs })).status, 400);
  const other = { ...CHANNEL, stream: { ...CHANNEL.stream, name: 'other' }, programs };
  const made = await call('POST', `${LIST}?problems=true`, other);
  const { body } = await call('PATCH', `${ONE}?problems=true`, { programs });
  const problemsOf = (answer: typeof body) =>
    (answer?.response as { problems: { type: string; description: string; program?: string }[] }).problems;
  const problems = problemsOf(body);
  for (const told of [problems, problemsOf(made.body)]) {
    t.deepEqual(
      told.map(({ type, program }) => [type, program]),
      [
        ['gap', undefined],
        ['unreadable', 'one'],
        ['overlap', 'one'],
        ['unreadable', 'two'],
        ['gap', undefined],
      ],
    );
  }
  t.regex(problems[0]?.description ?? '', /^nothing is scheduled from .* on, until .*$/);
  t.regex(problems[1]?.description ?? '', /^file:\/\/none\.mp4 of the program "one", scheduled at .*, cannot be read$/);
  t.regex(problems[2]?.description ?? '', /^the program "one" is cut at .*: its items last until .*$/);
});

test('a guide shows what will play', async (t) => {
  const { call } = await openChannelApi(t);
  const items = [
    { url: 'stream://default/app/one', duration: 60_000 },
    { url: 'stream://default/app/two', duration: 30_000 },
  ];
  const programs = [
    { name: 'x', scheduled: '2099-01-01T00:00:00Z', items },
    { name: 'y', scheduled: '2099-01-01T00:01:10Z', repeat: true, items: items.slice(1) },
  ];
  await call('POST', LIST, { ...CHANNEL, programs });
  const guide = async (query: string) => (await call('GET', `${ONE}/guide${query}`)).body;
  const time = (text: string) => localTime(Date.parse(text));
  const entry = (program: string, index: number, url: string, begins: string, ends: string) => ({
    type: 'item',
    begins: time(begins),
    ends: time(ends),
    program: {
      name: program,
      scheduled: time(program === 'x' ? '2099-01-01T00:00:00Z' : '2099-01-01T00:01:10Z'),
      repeat: program === 'y',
    },
    item: { url: `stream://default/app/${url}`, index, position: 0, unreadable: false },
  });
  const { response } = (await guide('?from=2099-01-01T00:59:00+01:00&to=2099-01-01T00:01:45Z')) as {
    response: { problems: unknown[] };
  };
  const { problems, ...rest } = response;
  t.is(problems.length, 1, 'today nothing is scheduled');
  t.deepEqual(rest, {
    from: time('2098-12-31T23:59:00Z'),
    to: time('2099-01-01T00:01:45Z'),
    truncated: false,
    entries: [
      { type: 'fallback', begins: time('2098-12-31T23:59:00Z'), ends: time('2099-01-01T00:00:00Z') },
      entry('x', 0, 'one', '2099-01-01T00:00:00Z', '2099-01-01T00:01:00Z'),
      entry('x', 1, 'two', '2099-01-01T00:01:00Z', '2099-01-01T00:01:10Z'),
      entry('y', 0, 'two', '2099-01-01T00:01:10Z', '2099-01-01T00:01:40Z'),
      entry('y', 0, 'two', '2099-01-01T00:01:40Z', '2099-01-01T00:02:10Z'),
    ],
  } as never);
  t.deepEqual(await guide('?from=soon'), error(400, 'from: "soon" is not a date and time'));
  t.is((await guide('?from=2099-01-02T00:00:00Z&to=2099-01-01T00:00:00Z'))?.statusCode, 400);
  const refused = async (query: string) => (await guide(query))?.message;
  t.is(await refused('?from=2099-01-01T00:00:00Z&to=2099-01-01T00:00:00Z'), '[HTTP] to: is not after from (400)');
  t.is(
    await refused('?from=2099-01-01T00:00:00Z&to=2099-02-02T00:00:00Z'),
    '[HTTP] to: is more than 31 days after from (400)',
  );
  for (const query of ['?from=', '?to=2099-13-01T00:00:00Z', '?from=2099-01-01T00:00:00+25:00', '?from=a&from=b'])
    t.is((await guide(query))?.statusCode, 400, query);
  t.is((await guide(''))?.statusCode, 200);
  t.deepEqual((await call('GET', `${LIST}/none/guide`)).body, MISSING);
});

test('programs are replaced by comma-separated values and by calendars', async (t) => {
  const { call, raw } = await openChannelApi(t);
  await call('POST', LIST, CHANNEL);
  const upload = (type: string, text: string) =>
    raw('PATCH', `/v1/vhosts/default/apps/${ONE}`, { 'content-type': type }, text);
  const csv =
    'program,scheduled,url,duration\nnews,2099-05-01T20:00:00+02:00,file://news.mp4,60000\n,,file://ad.mp4,\n';
  const answer = await upload('text/CSV; charset=utf-8', csv);
  t.like(answer, { status: 201, body: CREATED });
  const programs = [{ name: 'news', repeat: false, scheduled: localTime(Date.parse('2099-05-01T18:00:00Z')) }];
  t.deepEqual((await call('GET', ONE)).body?.response, { ...DETAIL, programs });
  const wrong = await upload('text/csv', 'program,url\nnews,file://news.mp4\n');
  t.is(wrong.status, 400, wrong.text);
  const calendar = (...lines: string[]) =>
    ['BEGIN:VCALENDAR', 'BEGIN:VEVENT', ...lines, 'URL:file://film.mp4', 'END:VEVENT', 'END:VCALENDAR'].join('\r\n');
  const film = calendar('SUMMARY:film', 'DTSTART;TZID=Europe/Berlin:20990601T200000', 'DURATION:PT2H');
  t.like(await upload('text/calendar', film), { status: 201, body: CREATED });
  const films = [{ name: 'film', repeat: false, scheduled: localTime(Date.parse('2099-06-01T18:00:00Z')) }];
  t.deepEqual((await call('GET', ONE)).body?.response, { ...DETAIL, programs: films });
  const endless = await upload('text/calendar', calendar('SUMMARY:film', 'DTSTART:20990601T180000Z'));
  t.like(endless, { status: 201, body: CREATED });
  const daily = await upload('text/calendar', calendar('SUMMARY:film', 'DTSTART:20200101T180000Z', 'RRULE:FREQ=DAILY'));
  const { until } = daily.body?.response as { until: string };
  const days = (Date.parse(until) - Date.now()) / DAY;
  t.true(days > 90 && days < 94, until);
  const guide = async () => ((await call('GET', `${ONE}/guide`)).body?.response as { until?: string }).until;
  t.is(await guide(), until);
  t.is((await call('PATCH', ONE, { fallbackProgram: FALLBACK })).status, 201);
  t.is(await guide(), until);
  await call('PATCH', ONE, { programs: PROGRAMS });
  t.is(await guide(), undefined);
  const late = await upload('text/calendar', calendar('DTSTART:tomorrow'));
  t.is(late.status, 400, late.text);
  t.regex(late.text, /line 3, column 1: DTSTART/);
  t.is((await upload('application/json', csv)).status, 400);
  t.like(await upload('text/plain', JSON.stringify({ programs: [] })), { status: 201 }, 'JSON whatever its type says');
});
