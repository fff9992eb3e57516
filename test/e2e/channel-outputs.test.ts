import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { Kiln } from '../support/kiln.ts';
import { mediaFolder } from '../support/media-files.ts';
import { readNumbers, writeNumbered, type PictureNumber } from '../support/numbered-files.ts';
import { PartViewer } from '../support/part-viewer.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const APP = '/v1/vhosts/default/apps/app';
const LLHLS = '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount>';
const FRAMES = 100;
/** The first two have the same parameters; the third has another size, profile and B-frames. */
const LARGE = ['-profile:v', 'high', '-preset', 'veryfast', '-bf', '2'];
const ITEMS = [{}, {}, { size: '640x360', video: LARGE }];
/** Frames that everything is looked at for: more than a round. */
const SPAN = 4.5 * FRAMES;

const { folder, remove } = await mediaFolder();
for (const [item, shape] of ITEMS.entries())
  await writeNumbered(join(folder, `${item}.mp4`), { item, frames: FRAMES, rate: 25, gop: 25, ...shape });
const records = join(folder, 'records');
const kiln = await Kiln.start({
  llhls: LLHLS,
  providers: `<Schedule><MediaRootDir>${folder}</MediaRootDir></Schedule>`,
  publishers: `<FILE><RootPath>${records}</RootPath></FILE><Push/>`,
});
const made = await kiln.api(`${APP}/scheduledChannels`, 'POST', {
  stream: { name: 'tv', bypassTranscoder: true },
  programs: [
    {
      ...{ name: 'all day', scheduled: '2026-01-01T00:00:00Z', repeat: true },
      items: ITEMS.map((_, item) => ({ url: `file://${item}.mp4` })),
    },
  ],
});
if (made.status !== 201) throw new Error(JSON.stringify(made.body));
const url = (stream: string) => kiln.httpUrl(`/app/${stream}/llhls.m3u8`);
const isThere = (stream: string) => until(`${stream} plays`, async () => (await fetch(url(stream))).status === 200);
await isThere('tv');
/** Sees all that the channel plays: on a busy machine it may come too late to an item, which is not what is tested here. */
const watcher = await PartViewer.start(url('tv'));

test.after.always(async () => {
  watcher.close();
  await kiln.stop();
  await remove();
});

/** Behind which pictures another one comes than the next of the schedule. */
function breaks(pictures: readonly PictureNumber[]): string[] {
  return pictures.flatMap(({ item, frame }, i) => {
    const before = pictures[i - 1];
    if (before === undefined) return [];
    const next = (before.item * FRAMES + before.frame + 1) % (ITEMS.length * FRAMES);
    return item * FRAMES + frame === next ? [] : [`${before.item}/${before.frame} -> ${item}/${frame}`];
  });
}

/** Breaks that the channel itself does not have. */
async function ownBreaks(pictures: readonly PictureNumber[]): Promise<string[]> {
  const allowed = breaks(await watcher.pictures());
  return breaks(pictures).filter((one) => !allowed.includes(one));
}

/** Failures of a player, without those that tell it that the channel stands still. */
const unexpected = ({ failures }: PartViewer) => failures.filter((failure) => !failure.startsWith('503 '));

for (const kind of ['ts', 'mp4']) {
  test(`a channel is recorded as ${kind} across changes of items, and what is recorded decodes`, async (t) => {
    const id = `record-${kind}`;
    const order = { id, stream: { name: 'tv' }, filePath: `${kind}/\${Sequence}.${kind}` };
    t.is((await kiln.api(`${APP}:startRecord`, 'POST', order)).status, 200);
    await until('it has recorded enough', async () => {
      const { body } = await kiln.api<readonly { readonly totalRecordTime: number }[]>(`${APP}:records`, 'POST', {
        id,
      });
      return (body.response[0]?.totalRecordTime ?? 0) > (SPAN / 25) * 1000;
    });
    t.is((await kiln.api(`${APP}:stopRecord`, 'POST', { id })).status, 200);
    const place = join(records, kind);
    const files = await until('all files are finished', async () => {
      const names = await readdir(place);
      return names.every((name) => /^\d+\.\w+$/.test(name)) && names;
    });
    const pictures: PictureNumber[] = [];
    for (const name of files.sort((one, other) => parseInt(one, 10) - parseInt(other, 10))) {
      await t.notThrowsAsync(
        run('ffmpeg', ['-v', 'error', '-xerror', '-i', join(place, name), '-f', 'null', '-']),
        name,
      );
      pictures.push(...(await readNumbers(await readFile(join(place, name)))));
    }
    t.log(`${kind}: ${files.length} files, ${pictures.length} pictures`);
    t.true(pictures.length > SPAN - 25);
    t.deepEqual(await ownBreaks(pictures), []);
  });
}

test('a channel is pushed over RTMP across changes of items to a server where it plays the same', async (t) => {
  const target = { protocol: 'rtmp', url: `rtmp://127.0.0.1:${kiln.ports.rtmp}/app`, streamKey: 'pushed' };
  t.is((await kiln.api(`${APP}:startPush`, 'POST', { id: 'push', stream: { name: 'tv' }, ...target })).status, 200);
  await isThere('pushed');
  const viewer = await PartViewer.start(url('pushed'));
  t.teardown(() => viewer.close());
  const pictures = await until('enough has come', async () => {
    const all = await viewer.pictures();
    return all.length > SPAN && all;
  });
  t.deepEqual(await ownBreaks(pictures), []);
  const { body } = await kiln.api<readonly { readonly sequence: number }[]>(`${APP}:pushes`, 'POST', { id: 'push' });
  t.is(body.response[0]?.sequence, 1, 'on one connection');
  t.deepEqual(unexpected(viewer), []);
  await kiln.api(`${APP}:stopPush`, 'POST', { id: 'push' });
});

test('an event that is sent with a channel comes to its viewers, in each of its items', async (t) => {
  const viewer = await PartViewer.start(url('tv'));
  t.teardown(() => viewer.close());
  for (let n = 0; n < 4; n++) {
    const text = `event ${n}`;
    const { parts } = viewer;
    const event = { eventFormat: 'id3v2', events: [{ frameType: 'TIT2', data: text }] };
    t.is((await kiln.api(`${APP}/streams/tv:sendEvent`, 'POST', event)).status, 200);
    await until('it comes', () => viewer.has(text));
    // into the next item
    await until('it goes on', () => viewer.parts >= parts + 4);
  }
  t.deepEqual(unexpected(viewer), []);
});
