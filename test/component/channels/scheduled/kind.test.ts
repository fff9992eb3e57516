import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { toSeconds } from '../../../../src/core/timebase.ts';
import { ChannelError } from '../../../../src/channels/sources/error.ts';
import { decode } from '../../../support/media/decoder.ts';
import { goLive } from '../../../support/server/live.ts';
import {
  byTrack,
  ffmpeg,
  mediaFolder,
  nutOf,
  processesReading,
  writePattern,
} from '../../../support/media/media-files.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { openScheduled } from '../../../support/channels/scheduled-kind.ts';
import { writeScript } from '../../../support/programs/script.ts';
import { until } from '../../../support/time/until.ts';
import type { ScheduleSpec } from '../../../../src/channels/scheduled/spec.ts';
import { item, schedule } from '../../../support/channels/virtual-channel.ts';
import { mutate } from '../../../soak/mutate.ts';
import { Random } from '../../../soak/random.ts';

const { folder, remove } = await mediaFolder();
test.after.always(remove);
const path = (name: string): string => join(folder, name);

test.before(async () => {
  await writePattern(path('a.mp4'), {
    seconds: 3,
    video: ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '3', '-g', '25'],
  });
  await writePattern(path('b.webm'), {
    ...{ seconds: 3, size: '320x180', audio: ['-c:a', 'libopus'] },
    video: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-g', '25'],
  });
  await ffmpeg('-i', path('a.mp4'), '-c', 'copy', path('c.ts'));
  await writePattern(path('d.mp3'), { seconds: 2, video: [], audio: ['-c:a', 'libmp3lame'] });
});

test.serial('files of many formats play one after the other, in real time, and decode', async (t) => {
  const { play, lines } = openScheduled(t, folder);
  const begins = Date.now() - 500;
  const items = ['a.mp4', 'b.webm', 'c.ts', 'd.mp3'].map((name) => item(`file:///${name}`));
  const channel = play(schedule([{ name: 'all', scheduled: begins, repeat: true, items }]));
  const { packets, times } = channel;
  await until('a whole round has played', () => Date.now() - begins > 12_500 && byTrack(packets).size >= 6);
  t.true(channel.isStarted);
  await channel.stop();
  t.deepEqual(
    lines.map(({ msg }) => msg),
    [],
  );
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
  for (const id of [0, 100]) {
    const own = packets.filter(({ track }) => track.id === id);
    const at = own.map(({ dts, track }) => toSeconds(dts, track.timebase));
    t.true(at.every((time, i) => i === 0 || time > (at[i - 1] ?? 0) - 1e-4));
    t.true(own.every(({ dts, pts }) => pts >= dts));
  }
  const formats = byTrack(packets);
  t.true(formats.size >= 6, `${formats.size} formats`);
  for (const [track, own] of formats) {
    const played = track.type === 'video' && own[0]?.key !== true ? own.slice(own.findIndex(({ key }) => key)) : own;
    t.is(await decode(nutOf(track, played), 'nut'), '', track.codec);
  }
  // nothing but the burst at the beginning is ahead of its time
  const media = packets.map(({ dts, track }) => toSeconds(dts, track.timebase) * 1000);
  const [mediaFrom = 0, from = 0] = [media[0], times[0]];
  t.true(media.every((at, i) => at - mediaFrom <= (times[i] ?? 0) - from + 5000));
});

test.serial('a channel off the air is listed, plays a file that comes, and ends cleanly', async (t) => {
  const { play, application } = openScheduled(t, folder);
  const later = Date.now() + 3_600_000;
  const channel = play(schedule([{ name: 'later', scheduled: later, repeat: false, items: [item('file://a.mp4')] }]));
  await until('it has started', () => channel.isStarted);
  t.deepEqual(channel.report, { fallback: false });
  t.truthy(application.stream('tv'));
  t.is(application.outputs.size, 0);
  const now = Date.now();
  channel.change(
    schedule(
      [{ name: 'now', scheduled: now, repeat: true, items: [item('file://missing.mp4')] }],
      [item('file://c.ts')],
    ),
  );
  await until('the fallback program plays', () => channel.packets.length > 20);
  t.true(channel.report.fallback);
  channel.change(schedule([{ name: 'now', scheduled: now, repeat: true, items: [item('file://a.mp4')] }]));
  await until('the program plays', () => !channel.report.fallback && channel.report.item !== undefined);
  t.is(channel.report.item?.url, 'file://a.mp4');
  t.is(channel.report.program?.name, 'now');
  await channel.stop();
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
  t.is(application.stream('tv'), undefined);
});

test.serial('a stream of the cluster is an item, and its own stream is none', async (t) => {
  const { play, registry, application, lines } = openScheduled(t, folder);
  const VIDEO = videoTrack();
  const AUDIO = audioTrack();
  const live = goLive(registry, 'app', 'cam', [VIDEO, AUDIO]);
  application.announce(live);
  let frames = 0;
  const feed = setInterval(() => {
    const from = frames++ / 10;
    const media = interleaved(
      videoPackets(VIDEO, { from, to: from + 0.1, gop: 30 }),
      audioPackets(AUDIO, { from, to: from + 0.1 }),
    );
    for (const packet of media) live.write(packet);
  }, 100);
  t.teardown(() => clearInterval(feed));
  const program = { name: 'live', scheduled: Date.now(), repeat: true };
  const channel = play(schedule([{ ...program, items: [item('stream://default/app/cam')] }]));
  await until('it plays', () => channel.packets.length > 60);
  t.deepEqual([...byTrack(channel.packets).keys()].map(({ id }) => id).sort(), [0, 100]);
  t.true(channel.packets[0]?.key);
  clearInterval(feed);
  live.input.close('the camera is off');
  await until('it has failed', () => lines.some(({ reason }) => /the stream has ended|no media/.test(reason ?? '')));
  channel.change(schedule([{ ...program, items: [item('stream://default/app/tv')] }], [item('file://c.ts')]));
  await until('the fallback program plays', () => channel.report.fallback);
  t.true(lines.some(({ reason }) => reason?.includes('is made of the channel that should read it')));
  await channel.stop();
});

test.serial('damaged files neither stop a channel nor leave programs behind', async (t) => {
  const { play } = openScheduled(t, folder);
  const random = new Random(17);
  const [mp4, ts] = [await readFile(path('a.mp4')), await readFile(path('c.ts'))];
  const names = await Promise.all(
    Array.from({ length: 24 }, async (_, index) => {
      const name = `damaged${index}.bin`;
      await writeFile(path(name), index % 2 === 0 ? mutate(mp4, random, ts) : mutate(ts, random, mp4));
      return name;
    }),
  );
  const items = names.map((name) => item(`file://${name}`, { duration: 1000 }));
  const fallback = [item('file://c.ts')];
  const begins = Date.now();
  const channel = play(schedule([{ name: 'damaged', scheduled: begins, repeat: true, items }], fallback));
  await until('all had their turn', () => Date.now() - begins > 25_000);
  const played = channel.packets.length;
  await until('it still plays', () => channel.packets.length > played + 20);
  t.true((await processesReading(folder)).length < 6);
  await channel.stop();
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
});

test.serial('a channel ends though its files are still being looked at', async (t) => {
  const endless = writeScript(path('endless'), 'exec sleep 600');
  const { play } = openScheduled(t, folder, undefined, endless);
  const channel = play(schedule([{ name: 'p', scheduled: 0, repeat: true, items: [item('file://a.mp4')] }]));
  const children = await until('the file is looked at', async () => {
    const found = await processesReading(folder, 'sleep');
    return found.length > 0 && found;
  });
  t.true(channel.isStarted);
  await channel.stop();
  t.deepEqual(await processesReading(folder, 'sleep'), children);
  for (const id of children) process.kill(Number(id));
});

test('a node suits a channel whose files it has', async (t) => {
  const { kind, application } = openScheduled(t, folder);
  const program = { name: 'p', scheduled: 0, repeat: true };
  const suits = (...urls: string[]): Promise<boolean> =>
    kind.suits(schedule([{ ...program, items: urls.map((url) => item(url)) }]) as never, application.config);
  t.true(await suits('file://a.mp4', 'stream://default/app/cam'));
  t.false(await suits('file://a.mp4', 'file://missing.mp4'));
  t.false(await kind.suits({}, application.config));

  const at = (ms: number, url: string) => ({ ...program, scheduled: Date.now() + ms, items: [item(url)] });
  const has = (programs: Parameters<typeof schedule>[0], fallback?: Parameters<typeof schedule>[1]) =>
    kind.suits(schedule(programs, fallback) as never, application.config);
  const [present, soon, later] = [at(-60_000, 'file://a.mp4'), 30_000, 3_600_000];
  t.true(await has([at(-120_000, 'file://missing.mp4'), present]), 'what is over is not needed');
  t.true(await has([present, at(later, 'file://missing.mp4')]), 'nor yet what comes much later');
  t.false(await has([present, at(soon, 'file://missing.mp4')]));
  t.false(await has([at(later, 'file://a.mp4')], [item('file://missing.mp4')]));
});

test('an application without the provider runs no channels', async (t) => {
  const { play } = openScheduled(t, folder, {});
  const channel = play(schedule([]));
  await t.throwsAsync(channel.over, { instanceOf: ChannelError, message: /the Schedule provider is off/ });
});

/** All pictures of a file of three seconds that is played again and again, in the order in which they are decoded. */
async function pictures({ play }: ReturnType<typeof openScheduled>, spec: ScheduleSpec): Promise<string[]> {
  const channel = play(spec, 'whole');
  const all = (): string[] =>
    channel.packets.flatMap(({ track, data }) => (track.type === 'video' ? data.toString('base64') : []));
  await until('it has begun again', () => new Set(all()).size < all().length);
  await channel.stop();
  return [...new Set(all())];
}

test.serial('a channel that stands by goes on where another one ends, right before its key frame', async (t) => {
  const one = openScheduled(t, folder);
  const other = openScheduled(t, folder);
  const spec = schedule([{ name: 'all', scheduled: Date.now() - 500, repeat: true, items: [item('file://a.mp4')] }]);
  const first = one.play(spec);
  await until('it plays', () => first.packets.length > 0);
  const standby = other.standBy(spec);
  await standby.ready;
  t.is(other.application.stream('tv'), undefined);
  await first.handOver();
  const second = other.play(spec, 'tv', (task) => standby.run(task), first.kept);
  await until('it goes on', () => second.packets.filter(({ track }) => track.type === 'video').length > 30);
  await second.stop();
  t.is(second.kept, null);
  const dataOf = ({ packets }: typeof first) =>
    packets.flatMap(({ track, data }) => (track.type === 'video' ? data.toString('base64') : []));
  const whole = schedule([{ name: 'all', scheduled: Date.now() - 3000, repeat: true, items: [item('file://a.mp4')] }]);
  const order = await pictures(one, whole);
  const [before, after] = [dataOf(first), dataOf(second)];
  t.true(second.packets.find(({ track }) => track.type === 'video')?.key);
  const place = (data: string | undefined): number => order.indexOf(data ?? '');
  t.is(place(after[0]), (place(before.at(-1)) + 1) % order.length);
});
