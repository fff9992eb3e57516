import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import { pino } from 'pino';
import { diskCalls } from '../../../../../src/core/disk-calls.ts';
import { Dump, isDumping } from '../../../../../src/publishers/hls/dump/dump.ts';
import { RecordedIndex } from '../../../../../src/recording/finished/recorded-index.ts';
import type { FollowedSegment, Follower } from '../../../../../src/publishers/hls/answer/segment-followers.ts';
import { feeder, openLlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { openLlhls, type LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { audioTrack, AVC_HIGH, dataTrack, eventPacket, videoTrack } from '../../../../support/media/packets.ts';
import { openRecordings } from '../../../../support/recording/finished.ts';
import { stayAwake } from '../../../../support/time/stay-awake.ts';
import { until } from '../../../../support/time/until.ts';

const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const TRACKS = [videoTrack(), audioTrack()];

async function place(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-dump-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  const folder = await place(t);
  const server = await openLlhls(t, { ...setup, llhls: { ...LLHLS, ...setup.llhls } });
  const { input, output } = server.goLive(TRACKS);
  const stream = await until('the stream is packaged', () => server.publisher.live(server.application, 'stream'));
  const request = { id: 'd', outputPath: join(folder, 'vod'), playlist: [] };
  const { dumps } = stream;
  // a stop is answered after five seconds, though a slow disk may need more
  const complete = (): Promise<boolean> =>
    until('the dumps to be complete', () => {
      const open = new Set<unknown>();
      for (const { event, dump } of server.lines) {
        if (event === 'dump.started') open.add(dump);
        if (event === 'dump.finished' || event === 'dump.failed') open.delete(dump);
      }
      return open.size === 0;
    });
  const stop = async (id?: string): Promise<string[]> => {
    const ids = await dumps.stop(id);
    await complete();
    return ids;
  };
  return { ...server, input, output, advance: feeder(output), dumps, stop, complete, stream, folder, request };
}

interface Vod {
  readonly lists: ReadonlyMap<string, HLS.types.MediaPlaylist>;
  readonly texts: ReadonlyMap<string, string>;
}

/** What a player finds in a folder: every file that a playlist names has to be there. */
async function vod(t: ExecutionContext, folder: string, master = 'llhls.m3u8'): Promise<Vod> {
  HLS.setOptions({ strictMode: true });
  const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
  const names = [...(await read(master)).matchAll(/URI="([^"]+)"|^([^#\n].*)$/gm)].map(
    ([, quoted, line]) => (quoted ?? line) as string,
  );
  const texts = new Map(await Promise.all(names.map(async (name) => [name, await read(name)] as const)));
  // after the playlists: what they name is written before them
  const files = new Set(await readdir(folder));
  const lists = new Map<string, HLS.types.MediaPlaylist>();
  for (const [name, text] of texts) {
    const list = HLS.parse(text) as HLS.types.MediaPlaylist;
    t.true(list.endlist, name);
    t.is(list.playlistType, 'VOD', name);
    t.notRegex(text, /\?/, name);
    for (const { uri, map } of list.segments) {
      t.true(files.has(uri), uri);
      if (map !== null) t.true(files.has(map.uri), map.uri);
    }
    lists.set(name, list);
  }
  return { lists, texts };
}

const msnsOf = ({ segments }: HLS.types.MediaPlaylist) =>
  segments.map(({ uri }) => Number(/_(\d+)_/.exec(uri.replace(/^seg_\d+/, ''))?.[1]));
const isWhole = (numbers: readonly number[]) => numbers.every((number, index) => number === (numbers[0] ?? 0) + index);

test('a dump begins with the window, goes on, and is complete with the end of the stream', async (t) => {
  const { advance, dumps, complete, input, request, get, children, folder } = await live(t, {
    llhls: { defaultQueryString: [{ key: 'a', value: 'b' }] },
  });
  advance(12.1);
  const [, video = ''] = await children();
  const first = Number(/MEDIA-SEQUENCE:(\d+)/.exec((await get(video)).body)?.[1]);
  t.true(first > 0, 'the window has moved');
  const infoFile = join(folder, 'infos/dump.xml');
  await dumps.start({ ...request, infoFile, userData: 'a <b> & c' });
  const { lists: begun } = await vod(t, request.outputPath);
  t.is(begun.size, 2);
  const from = Math.min(...[...begun.values()].map((list) => msnsOf(list)[0] ?? NaN));
  t.true(from <= first);
  for (const list of begun.values()) t.deepEqual(msnsOf(list).slice(0, 3), [from, from + 1, from + 2]);
  t.regex(await readFile(infoFile, 'utf8'), /<Status>Running</);
  const [, segment = ''] = /^(seg_\d+_\d+_video\S+)\?a=b$/m.exec((await get(video)).body) ?? [];
  const { rawPayload } = await get(`${video.slice(0, video.lastIndexOf('/'))}/${segment}`);
  t.deepEqual(await readFile(join(request.outputPath, segment)), rawPayload, 'the same bytes as players get');
  advance(31.3);
  input.close('the publisher has gone');
  await dumps.end();
  await complete();
  const { lists } = await vod(t, request.outputPath);
  for (const list of lists.values()) {
    t.true(isWhole(msnsOf(list)), 'none is missing, none comes twice');
    t.is(list.segments[0]?.mediaSequenceNumber, from);
    const seconds = list.segments.reduce((sum, { duration }) => sum + duration, 0);
    t.true(Math.abs(seconds - (31.3 - from * 2)) < 0.1, `${seconds} s`);
  }
  t.deepEqual(dumps.list(), []);
  const info = await readFile(infoFile, 'utf8');
  t.regex(info, /<Status>Completed</);
  t.regex(info, /<UserData>a &lt;b&gt; &amp; c<\/UserData>\n {2}<Stream>\/default\/app\/stream<\/Stream>/);
  const items = [...info.matchAll(/<Seq>(\d+)<\/Seq>\s*<Time>[^<]+<\/Time>\s*<File>([^<]+)<\/File>/g)];
  t.deepEqual(
    items.map(([, seq]) => Number(seq)),
    items.map((_, index) => index),
  );
  const dumped = (await readdir(request.outputPath)).map((name) => join(request.outputPath, name));
  t.deepEqual(items.map(([, , file]) => file).sort(), dumped.sort());
});

test('a dump that starts during an ad break has the beginning of the break', async (t) => {
  const { advance, dumps, stop, output, request } = await live(t);
  const cues = dataTrack({ id: 1025, codec: 'CUE' });
  output.setTracks([...TRACKS, cues]);
  advance(5);
  output.write(eventPacket(cues, 5 * 90_000, Buffer.from('{"cueType":"out","duration":60000}')));
  advance(30);
  await dumps.start(request);
  advance(70);
  await stop('d');
  const { texts } = await vod(t, request.outputPath);
  for (const text of texts.values()) {
    const [head = ''] = text.split('#EXTINF', 1);
    t.regex(head, /#EXT-X-DATERANGE:.*PLANNED-DURATION=60\n#EXT-X-PROGRAM-DATE-TIME/);
    t.is(text.match(/#EXT-X-DATERANGE.*PLANNED-DURATION/g)?.length, 1);
    t.is(text.match(/#EXT-X-CUE-IN/g)?.length, 1);
  }
});

test('discontinuities and other configurations are kept', async (t) => {
  const { advance, dumps, stop, output, request } = await live(t);
  advance(5);
  await dumps.start(request);
  output.setTracks([videoTrack({ config: AVC_HIGH, width: 1280, height: 720 }), audioTrack()]);
  advance(12);
  t.deepEqual(await stop('d'), ['d']);
  const { texts } = await vod(t, request.outputPath);
  const [video = ''] = [...texts].filter(([name]) => name.includes('video')).map(([, text]) => text);
  t.regex(video, /#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="init_0_video_\w+_v1_llhls.m4s"\n/);
  for (const text of texts.values()) t.is(text.match(/#EXT-X-DISCONTINUITY\n/g)?.length, 1);
});

test('a track that comes later gets its media playlist and a place in the master playlist', async (t) => {
  const { advance, dumps, stop, output, request } = await live(t);
  output.setTracks([videoTrack()]);
  advance(7);
  await dumps.start(request);
  const video = (await vod(t, request.outputPath)).texts;
  t.is(video.size, 1);
  output.setTracks(TRACKS);
  advance(14);
  await stop();
  const { lists, texts } = await vod(t, request.outputPath);
  t.is(lists.size, 2);
  for (const list of lists.values()) t.true(isWhole(msnsOf(list)));
  const starts = [...lists.values()].map(({ segments }) => segments[0]?.mediaSequenceNumber ?? 0);
  t.true(Math.max(...starts) > Math.min(...starts));
  for (const text of texts.values()) t.notRegex(text, /GAP/);
});

test('the folder can be played at any moment', async (t) => {
  const { advance, dumps, stop, request } = await live(t);
  await dumps.start(request);
  for (let to = 3; to <= 24; to += 3) {
    advance(to);
    await until('the next segment is listed', async () => {
      const { lists } = await vod(t, request.outputPath).catch(() => ({
        lists: new Map<string, HLS.types.MediaPlaylist>(),
      }));
      return [...lists.values()].some(({ segments }) => segments.length >= Math.floor((to - 1) / 2));
    });
  }
  await stop();
  await vod(t, request.outputPath);
});

test('a later dump of the same playlists goes on in the folder of the one before', async (t) => {
  const { advance, dumps, stop, request } = await live(t);
  advance(9.1);
  await dumps.start(request);
  advance(13.1);
  await stop();
  advance(15.1);
  await dumps.start(request);
  advance(19.1);
  await stop();
  const joined = await vod(t, request.outputPath);
  for (const list of joined.lists.values()) t.true(isWhole(msnsOf(list)));
  for (const text of joined.texts.values()) t.notRegex(text, /DISCONTINUITY/);
  advance(40);
  await dumps.start(request);
  await stop();
  const { texts, lists } = await vod(t, request.outputPath);
  for (const list of lists.values()) t.true((msnsOf(list).at(-1) ?? 0) >= 18);
  for (const text of texts.values())
    t.is(text.match(/#EXT-X-DISCONTINUITY\n/g)?.length, 1, 'where segments are missing');
});

test('dumps that have ended can be found and deleted: one that was gone on with together with the later one', async (t) => {
  const state = await place(t);
  const index = new RecordedIndex({ folder: join(state, 'recorded'), log: pino({ level: 'silent' }) });
  const recordings = openRecordings(state, { isDumping });
  const { advance, dumps, stop, application, request } = await live(t, { onDumped: (dump) => index.addDump(dump) });
  const names = { vhost: application.vhost.name, app: application.name };
  const list = async () => (await recordings.page(names, { limit: 10 })).recorded;
  advance(9.1);
  await dumps.start({ ...request, userData: 'mine' });
  advance(13.1);
  await stop();
  const [first, ...more] = await list();
  t.deepEqual(more, []);
  const folder = await realpath(request.outputPath);
  const [{ length: lists }, { length: others }] = [first?.entry.dump?.lists ?? [], first?.entry.dump?.others ?? []];
  t.deepEqual([lists, others], [2, 1]);
  t.like(first?.entry, {
    id: 'd',
    stream: 'stream',
    metadata: 'mine',
    root: folder,
    path: 'llhls.m3u8',
    container: 'fMP4',
  });
  t.true((first?.entry.size ?? 0) > 0);
  const seconds = (first?.entry.recordTime ?? 0) / 1000;
  t.true(seconds > 5, `${seconds} s`);
  await dumps.start({ ...request, id: 'e' });
  const running = await t.throwsAsync(recordings.remove(names, first?.id ?? ''));
  t.regex(String(running?.message), /still written/);
  await stop();
  const second = (await list()).find(({ entry }) => entry.id === 'e');
  const refused = await t.throwsAsync(recordings.remove(names, first?.id ?? ''));
  t.regex(String(refused?.message), /a later dump that goes on with it/);
  await vod(t, request.outputPath);
  t.true(await recordings.remove(names, second?.id ?? ''));
  await t.throwsAsync(readdir(request.outputPath), { code: 'ENOENT' });
  t.true(await recordings.remove(names, first?.id ?? ''));
  t.deepEqual(await list(), []);
});

test('a dump that cannot be listed is complete all the same', async (t) => {
  const onDumped = async () => {
    throw new Error('the disk is full');
  };
  const { advance, dumps, stop, lines, request } = await live(t, { onDumped });
  advance(9.1);
  await dumps.start(request);
  await stop();
  await vod(t, request.outputPath);
  await until('it is logged', () => lines.some(({ reason }) => reason === 'the disk is full'));
});

test('a new dump goes on where the first has ended after the publisher has come back', async (t) => {
  const folder = await place(t);
  const node = await openLlhlsNode(t, MemoryCluster.create(t, 1), 'a', { llhls: LLHLS });
  const request = { id: 'd', outputPath: join(folder, 'vod'), playlist: [] };
  const dumps = () => node.publisher.live(node.application, 'stream')?.dumps;
  const first = await node.goLive(TRACKS);
  feeder(first.output)(9.1);
  await dumps()?.start(request);
  first.input.close('the publisher has gone');
  const next = await node.goLive(TRACKS);
  await dumps()?.start(request);
  feeder(next.output)(5);
  await dumps()?.stop();
  const { lists, texts } = await vod(t, request.outputPath);
  for (const list of lists.values()) t.true(isWhole(msnsOf(list)) && msnsOf(list).length > 5);
  for (const text of texts.values()) t.is(text.match(/#EXT-X-DISCONTINUITY\n/g)?.length, 1);
});

test('a conclusion completes dumps, and what is concluded can still be dumped', async (t) => {
  const { advance, dumps, complete, request, stream, output, folder } = await live(t);
  advance(7.3);
  await dumps.start(request);
  stream.stream.conclude(true);
  await until('it has ended', () => dumps.list().length === 0);
  await dumps.end();
  await complete();
  const whole = await vod(t, request.outputPath);
  await dumps.start({ ...request, outputPath: join(folder, 'late') });
  await dumps.end();
  await complete();
  const late = await vod(t, join(folder, 'late'));
  t.deepEqual([...late.texts], [...whole.texts]);
  t.false(output.watched);
});

test('only the requested playlists are dumped', async (t) => {
  const playlist = (fileName: string) => ({
    name: fileName,
    fileName,
    options: {
      webrtcAutoAbr: false,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: 2,
      enableTsPackaging: false,
    },
    renditions: [{ videoVariantName: 'video', audioVariantName: 'audio' }],
  });
  const { advance, dumps, stop, folder, request } = await live(t, { playlists: [playlist('one'), playlist('two')] });
  advance(5);
  await dumps.start({ ...request, playlist: ['one.m3u8'] });
  await dumps.start({ ...request, id: 'all', outputPath: join(folder, 'all') });
  t.deepEqual(
    dumps.list().map(({ id, outputPath, reason }) => ({ id, outputPath, reason })),
    [
      { id: 'all', outputPath: join(folder, 'all'), reason: undefined },
      { id: 'd', outputPath: request.outputPath, reason: undefined },
    ],
  );
  t.deepEqual(await stop(), ['all', 'd']);
  const masters = async (path: string) =>
    (await readdir(path)).filter((name) => name.endsWith('.m3u8') && !name.startsWith('chunklist')).sort();
  t.deepEqual(await masters(request.outputPath), ['one.m3u8']);
  t.deepEqual(await masters(join(folder, 'all')), ['llhls.m3u8', 'one.m3u8', 'two.m3u8']);
  await vod(t, request.outputPath, 'one.m3u8');
});

test('encoders are kept at work as long as a dump runs', async (t) => {
  const { dumps, stop, output, request } = await live(t);
  t.false(output.watched);
  await dumps.start(request);
  t.true(output.watched);
  await stop();
  t.false(output.watched);
});

test('a dump that is not possible is rejected, and leaves no files', async (t) => {
  const { advance, dumps, stop, folder, request } = await live(t);
  advance(5);
  const infoFile = join(folder, 'info.xml');
  await writeFile(infoFile, 'mine');
  await writeFile(join(folder, 'file'), '');
  await mkdir(join(folder, 'real'));
  await symlink(join(folder, 'real'), join(folder, 'link'));
  await dumps.start({ ...request, id: 'first', outputPath: join(folder, 'real') });
  const refused = async (more: object, message: string | RegExp): Promise<void> => {
    const error = await t.throwsAsync(dumps.start({ ...request, ...more }));
    if (typeof message === 'string') t.is(error?.message, `Could not start dump: [default/app/stream] (${message})`);
    else t.regex(error?.message ?? '', message);
  };
  await refused({ infoFile }, 'Duplicate info file');
  t.is(await readFile(infoFile, 'utf8'), 'mine');
  await refused({ id: 'first' }, 'Duplicate ID');
  await refused({ outputPath: join(folder, 'link') }, 'Another dump writes to this output path');
  await refused({ playlist: ['none.m3u8'] }, 'Could not dump master playlist');
  await refused({ outputPath: join(folder, 'file') }, /EEXIST|ENOTDIR/);
  await refused({ outputPath: 'relative' }, /^the path of a dump has to be absolute/);
  await refused({ outputPath: `${folder}/../x` }, /must not contain "\.\."/);
  await refused({ outputPath: `${folder}/${'x'.repeat(256)}` }, /too long/);
  await refused({ outputPath: `${folder}/a\0b` }, /NUL/);
  t.deepEqual(
    dumps.list().map(({ id }) => id),
    ['first'],
  );
  t.deepEqual((await readdir(folder)).sort(), ['file', 'info.xml', 'link', 'real']);
  await t.throwsAsync(dumps.stop('none'), { code: 'dumpNotFound' });
  t.deepEqual(await stop('first'), ['first']);
  t.deepEqual(await stop(), []);
  await dumps.start({ ...request, id: 'first', outputPath: join(folder, 'link') });
  t.deepEqual(await stop('first'), ['first']);
});

test('a dump to a disk that hangs is rejected, and leaves no info file when the disk answers again', async (t) => {
  stayAwake(t);
  const { dumps, folder, request } = await live(t);
  const infoFile = join(folder, 'info.xml');
  const { promise, resolve } = Promise.withResolvers<void>();
  const calls = diskCalls.of(`dumps of ${request.outputPath}`);
  for (let call = 0; call < 2; call++) void calls.take(() => promise);
  await t.throwsAsync(dumps.start({ ...request, infoFile }), { message: /the disk does not answer/ });
  resolve();
  // the second call begins after that of the dump
  for (let call = 0; call < 2; call++) await calls.take(async () => undefined);
  await until('the info file is removed', async () => !(await readdir(folder)).includes('info.xml'));
});

test('a server that stops completes its dumps', async (t) => {
  const { advance, dumps, request, registry, publisher, folder } = await live(t);
  advance(5.1);
  const infoFile = join(folder, 'info.xml');
  await dumps.start({ ...request, infoFile });
  registry.close('the server is stopping');
  await publisher.close();
  t.regex(await readFile(infoFile, 'utf8'), /<Status>Completed</);
  const { lists } = await vod(t, request.outputPath);
  for (const { segments } of lists.values())
    t.true(Math.abs(segments.reduce((sum, { duration }) => sum + duration, 0) - 5.1) < 0.1);
});

test('one of concurrent starts of a dump under one id succeeds, and one of those into one folder', async (t) => {
  const { advance, dumps, stop, request } = await live(t);
  advance(5);
  const same = await Promise.allSettled(Array.from({ length: 4 }, () => dumps.start(request)));
  t.is(same.filter(({ status }) => status === 'fulfilled').length, 1);
  await stop();
  const all = ['a', 'b', 'c'].map((id) => dumps.start({ ...request, id }));
  t.is((await Promise.allSettled(all)).filter(({ status }) => status === 'fulfilled').length, 1);
  await stop();
  await vod(t, request.outputPath);
});

test('a disk that fails ends the dump with an error: what was written can be played, and the stream goes on', async (t) => {
  const { advance, dumps, stop, folder, request, get, children } = await live(t);
  advance(5.1);
  const infoFile = join(folder, 'info.xml');
  await dumps.start({ ...request, infoFile });
  const moved = join(folder, 'moved');
  await rename(request.outputPath, moved);
  await writeFile(request.outputPath, 'no folder any more');
  advance(9.1);
  const [failed] = await until(
    'it has failed',
    () => dumps.list().some(({ reason }) => reason !== undefined) && dumps.list(),
  );
  t.regex(failed?.reason ?? '', /ENOTDIR/);
  await until('the info file tells it', async () => /<Status>Error</.test(await readFile(infoFile, 'utf8')));
  await vod(t, moved);
  t.is((await get((await children())[1] ?? '')).statusCode, 200);
  t.deepEqual(await stop('d'), ['d']);
  t.regex(await readFile(infoFile, 'utf8'), /<Status>Error</);
});

test('a dump that goes on after a death between two segments has their gap at the time of the other one', async (t) => {
  const folder = await place(t);
  const segment = (list: string, msn: number, more: Partial<FollowedSegment> = {}): FollowedSegment => ({
    ...{ list: `chunklist_${list}.m3u8`, name: `seg_${list}_${msn}_x.ts`, msn, duration: 2, wallClock: msn * 2000 },
    ...{ discontinuity: false, discontinuitySequence: 0, gap: false, breaks: '', breaksBefore: '', bytes: 1 },
    body: () => [Buffer.alloc(1)],
    ...more,
  });
  const write = async (...segments: FollowedSegment[]) => {
    const dump = new Dump({
      ...{ outputPath: folder, template: folder, stream: '/v/a/s', continues: true, log: pino({ level: 'silent' }) },
      ...{ watch: () => () => {}, masters: () => [], onEnd: () => {} },
      follow: (follower) => {
        for (const one of segments) follower.segment(one);
        return () => {};
      },
    });
    await dump.start();
    await dump.end();
    t.is(dump.failure, undefined);
  };
  await write(segment('0', 4), segment('1', 4), segment('0', 5));
  const after = [4, 5, 6].flatMap((msn) =>
    ['0', '1'].map((list) => segment(list, msn, { gap: true, wallClock: 60_000 + msn * 2000 })),
  );
  await write(...after, ...['0', '1'].map((list) => segment(list, 7, { discontinuity: true, wallClock: 74_000 })));
  const [first, second] = await Promise.all(
    ['0', '1'].map(async (list) => await readFile(join(folder, `chunklist_${list}.m3u8`), 'utf8')),
  );
  const dates = (text = '') => text.match(/#EXT-X-(?:DISC|PROG).*/g);
  t.is(dates(first)?.length, 5);
  t.deepEqual(dates(second), dates(first));
});

/** A dump of segments that are still to be made. */
async function slowDump(t: ExecutionContext, onFailure: (line: object) => void = () => undefined) {
  const folder = await place(t);
  let follower: Follower | undefined;
  const disk = Promise.withResolvers<readonly Buffer[]>();
  const dump = new Dump({
    outputPath: folder,
    template: folder,
    stream: '/v/a/s',
    watch: () => () => {},
    follow: (one) => {
      follower = one;
      return () => (follower = undefined);
    },
    masters: () => [],
    onEnd: () => {},
    continues: true,
    log: pino({ level: 'error' }, { write: (line: string) => onFailure(JSON.parse(line) as object) }),
  });
  await dump.start();
  let asked = 0;
  let msn = 0;
  const add = (): void =>
    follower?.segment({
      list: 'list.m3u8',
      name: `seg_${msn}.m4s`,
      msn: msn++,
      duration: 2,
      wallClock: 0,
      discontinuity: false,
      discontinuitySequence: 0,
      gap: false,
      breaks: '',
      breaksBefore: '',
      bytes: 16 * 1024 * 1024,
      body: () => {
        asked++;
        return disk.promise;
      },
    });
  return { dump, folder, add, disk, asked: () => asked, follows: () => follower !== undefined };
}

test.serial('a disk that is too slow does not fill the memory', async (t) => {
  const failures: object[] = [];
  const { dump, folder, add, disk, follows } = await slowDump(t, (line) => failures.push(line));
  for (let i = 0; i < 4; i++) add();
  t.is(dump.failure, undefined);
  add();
  t.is(dump.failure?.message, 'the disk is too slow');
  t.false(follows(), 'it follows no longer');
  disk.resolve([Buffer.from('late')]);
  await dump.end();
  t.is(failures.length, 1);
  const list = await readFile(join(folder, 'list.m3u8'), 'utf8');
  t.regex(list, /\nseg_0\.m4s\n#EXT-X-ENDLIST\n$/);
});

test.serial('dumps to one disk take turns, and have a limit together', async (t) => {
  const dumps = await Promise.all(Array.from({ length: 12 }, () => slowDump(t)));
  for (let i = 0; i < 4; i++) for (const { add } of dumps) add();
  await until('the disk is busy', () => dumps.filter(({ asked }) => asked() > 0).length === 2);
  const isFull = dumps.filter(({ dump }) => dump.failure !== undefined).length;
  t.true(isFull >= 4 && isFull < 12, `${isFull} have failed`);
  for (const { disk } of dumps) disk.resolve([Buffer.from('late')]);
  await Promise.all(dumps.map(({ dump }) => dump.end()));
  t.true(dumps.every(({ asked, dump }) => dump.failure !== undefined || asked() === 4));
});

test('dumps of the configuration start by themselves, with each stream that they are for', async (t) => {
  const root = await place(t);
  const dump = {
    enable: true,
    targetStreamName: 'str*',
    playlists: ['llhls'],
    outputPath: `${root}/\${StreamName}`,
    infoFile: `${root}/\${StreamName}.xml`,
  };
  const { goLive, publisher, application } = await openLlhls(t, {
    llhls: {
      ...LLHLS,
      dumps: [
        { ...dump, userData: 'u' },
        { ...dump, id: 'off', enable: false, outputPath: `${root}/off` },
        { ...dump, id: 'other', targetStreamName: 'other', outputPath: `${root}/other` },
      ],
    },
  });
  const { output, input } = goLive(TRACKS, 'stream');
  const dumps = publisher.live(application, 'stream')?.dumps;
  feeder(output)(5.1);
  await until('it runs', async () => (await readdir(root)).includes('stream'));
  t.regex(dumps?.list()[0]?.id ?? '', /^\w{8}$/);
  t.is(dumps?.list().length, 1);
  await until('the window is written', async () => (await readdir(join(root, 'stream'))).includes('llhls.m3u8'));
  input.close('the publisher has gone');
  await dumps?.end();
  const { lists } = await vod(t, join(root, 'stream'));
  t.is(lists.size, 2);
  t.regex(await readFile(join(root, 'stream.xml'), 'utf8'), /<UserData>u<[^]*<Status>Completed</);
  t.deepEqual((await readdir(root)).sort(), ['stream', 'stream.xml']);
});

test('HLS with MPEG-TS is dumped by its own configuration', async (t) => {
  const root = await place(t);
  const dump = { id: 'ts', enable: true, targetStreamName: '*', playlists: [], outputPath: `${root}/ts` };
  const { goLive, publishers, application } = await openLlhls(t, {
    llhls: LLHLS,
    hls: { segmentDuration: 2, segmentCount: 3, dumps: [dump] },
  });
  const { output, input } = goLive(TRACKS);
  feeder(output)(12.1);
  await until('it runs', async () => (await readdir(root)).includes('ts'));
  const dumps = publishers[1]?.live(application, 'stream')?.dumps;
  await until('the window is written', async () => (await readdir(join(root, 'ts'))).includes('playlist.m3u8'));
  input.close('the publisher has gone');
  await dumps?.end();
  const { lists, texts } = await vod(t, join(root, 'ts'), 'playlist.m3u8');
  for (const list of lists.values()) t.true(isWhole(msnsOf(list)) && list.segments.length >= 4);
  for (const text of texts.values()) t.regex(text, /#EXT-X-VERSION:3\n/);
});

test('a dump of a stream in which players rewind begins with all that is listed', async (t) => {
  const folder = await place(t);
  const dvr = { enable: true, tempStoragePath: join(folder, 'dvr'), maxDuration: 3600, eventPlaylistType: false };
  const { advance, stop, dumps, request, stream } = await live(t, { llhls: { dvr } });
  advance(20.1);
  const earlier = { ...request, id: 'e' };
  await dumps.start(earlier);
  await stop('e');
  advance(30.1);
  await dumps.start(request);
  advance(34.1);
  await stop('d');
  const { lists } = await vod(t, request.outputPath);
  t.is(lists.size, 2);
  for (const list of lists.values()) {
    const numbers = msnsOf(list);
    t.is(numbers[0], 0);
    t.true(isWhole(numbers));
    t.true(numbers.length >= 15, `${numbers.length}`);
    t.true(list.segments.every(({ discontinuity }) => !discontinuity));
  }
  // without an earlier dump
  await dumps.start({ ...request, outputPath: join(folder, 'other') });
  stream.stream.conclude(true);
  await stop();
  const other = await vod(t, join(folder, 'other'));
  for (const list of other.lists.values()) t.is(msnsOf(list)[0], 0);
});
