import { copyFile, readFile, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { toSeconds } from '../../../../src/core/timebase.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { long } from '../../../support/runner/long.ts';
import { ffmpeg, mediaFolder, processesReading, writePattern } from '../../../support/media/media-files.ts';
import { openScheduled } from '../../../support/channels/scheduled-kind.ts';
import { writeScript } from '../../../support/programs/script.ts';
import { until } from '../../../support/time/until.ts';
import { item, schedule } from '../../../support/channels/virtual-channel.ts';

const { folder, remove } = await mediaFolder();
test.after.always(remove);
const path = (name: string): string => join(folder, name);
const VIDEO = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '25', '-pix_fmt', 'yuv420p'];
/** The sizes of the pictures tell which file plays. */
const [WIDE, OTHER, PAUSE] = [160, 192, 96];

test.before(async () => {
  await writePattern(path('long.mp4'), { seconds: 120, size: `${WIDE}x90`, video: VIDEO });
  await ffmpeg('-i', path('long.mp4'), '-c', 'copy', path('long.ts'));
  await writePattern(path('other.mp4'), { seconds: 120, size: `${OTHER}x90`, video: VIDEO });
  await writePattern(path('pause.mp4'), { seconds: 60, size: `${PAUSE}x90`, video: VIDEO });
});

/** The channel of one item, which has begun a moment ago, with a fallback program. */
function channelOf(name: string) {
  const program = { name: 'p', scheduled: Date.now(), repeat: true, items: [item(`file://${name}`)] };
  return schedule([program], [item('file://pause.mp4')]);
}

function widthOf(packet: Packet | undefined): number {
  return packet?.track.type === 'video' ? packet.track.width : 0;
}

/** Waits until pictures of a width come that come after so many packets. */
async function shows(packets: readonly Packet[], width: number, after = 0): Promise<void> {
  await until(`pictures of ${width} come`, () => packets.slice(after).some((packet) => widthOf(packet) === width));
}

/** Milliseconds of the longest step between two pictures, and whether the times of each track grow. */
function examine(packets: readonly Packet[]): { step: number; grows: boolean } {
  let step = 0;
  let grows = true;
  for (const id of [0, 100]) {
    const times = packets
      .filter(({ track }) => track.id === id)
      .map(({ dts, track }) => toSeconds(dts, track.timebase) * 1000);
    for (const [index, at] of times.entries()) {
      const before = times[index - 1];
      if (before === undefined) continue;
      if (at <= before) grows = false;
      if (id === 0) step = Math.max(step, at - before);
    }
  }
  return { step, grows };
}

for (const [signal, what] of [
  ['SIGKILL', 'is killed, as when memory is short'],
  ['SIGSTOP', 'stands still'],
] as const) {
  test.serial(`the fallback program plays when ffmpeg ${what}, and the item comes back`, async (t) => {
    const { play } = openScheduled(t, folder);
    const channel = play(channelOf('long.mp4'));
    const { packets } = channel;
    const position = () => channel.report.item?.position ?? 0;
    await shows(packets, WIDE);
    await until('the item plays', () => position() > 1000);
    // on a busy machine one that was late may have been replaced
    const reader = await until('one ffmpeg reads it', async () => {
      const readers = await processesReading(folder, 'ffmpeg');
      return readers.length === 1 && readers[0];
    });
    const [killedAt, played] = [position(), packets.length];
    process.kill(Number(reader), signal);
    await shows(packets, PAUSE, played);
    const back = packets.length;
    await shows(packets, WIDE, back);
    // on a busy machine it may be late once more
    await until(
      'it goes on',
      () => packets.length > back + 60 && channel.report.item?.url === 'file://long.mp4' && !channel.report.fallback,
    );
    t.true(position() >= killedAt, `position ${position()}, ${killedAt} before`);
    const { step, grows } = examine(packets);
    t.true(grows, 'times grow');
    t.log(`the longest step between pictures: ${Math.round(step)} ms`);
    await channel.stop();
    await until('nothing is left', async () => (await processesReading(folder)).length === 0);
  });
}

long('an ffmpeg that puts out nothing is given up, and leaves nothing behind', async (t) => {
  const program = writeScript(
    path('mute'),
    `case " $* " in *" -f nut "*) [ "$(readlink /proc/self/fd/0)" = ${path('long.mp4')} ] && exec sleep 600;; esac\nexec ffmpeg "$@"`,
  );
  const { play, lines } = openScheduled(t, folder, undefined, program);
  const channel = play(channelOf('long.mp4'));
  await shows(channel.packets, PAUSE);
  t.true(channel.report.fallback);
  await until('it is told', () => lines.some(({ reason }) => reason === 'it did not begin in time'));
  const played = channel.packets.length;
  await until('the fallback program goes on', () => channel.packets.length > played + 100);
  t.true(examine(channel.packets).grows);
  await channel.stop();
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
});

long('a file that is replaced while it plays plays on, and its successor is played next', async (t) => {
  await copyFile(path('long.mp4'), path('replaced.mp4'));
  const { play, lines } = openScheduled(t, folder);
  const begins = Date.now();
  const items = [item('file://replaced.mp4', { duration: 6000 }), item('file://pause.mp4', { duration: 4000 })];
  const channel = play(schedule([{ name: 'p', scheduled: begins, repeat: true, items }]));
  const { packets } = channel;
  await until('it plays', () => packets.length > 60);
  await copyFile(path('other.mp4'), path('new.mp4'));
  await rename(path('new.mp4'), path('replaced.mp4'));
  await shows(packets, PAUSE);
  t.false(packets.some((packet) => widthOf(packet) === OTHER));
  await shows(packets, OTHER);
  t.true(examine(packets).grows);
  t.deepEqual(
    lines.map(({ reason }) => reason),
    [],
  );
  await channel.stop();
});

for (const name of ['long.mp4', 'long.ts']) {
  long(`${name} that is cut off or overwritten while it plays does not stop the channel`, async (t) => {
    for (const isOverwritten of [false, true]) {
      const file = `damaged-${name}`;
      await copyFile(path(name), path(file));
      const { play } = openScheduled(t, folder);
      const channel = play(channelOf(file));
      const { packets } = channel;
      await until('it plays', () => packets.length > 60);
      const whole = await readFile(path(file));
      if (isOverwritten) await writeFile(path(file), Buffer.alloc(whole.length, 'no media '), { flag: 'r+' });
      else await truncate(path(file), Math.round(whole.length / 20));
      await shows(packets, PAUSE);
      const away = packets.length;
      await writeFile(path(file), whole);
      await shows(packets, WIDE, away);
      t.true(examine(packets).grows);
      await channel.stop();
    }
    await until('nothing is left', async () => (await processesReading(folder)).length === 0);
  });
}

test.serial('a channel that is handed over leaves its stream and no program', async (t) => {
  const { play, application } = openScheduled(t, folder);
  const channel = play(channelOf('long.mp4'));
  await until('it plays', () => channel.packets.length > 60);
  await channel.stop('handedOver');
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
  t.is(application.stream('tv'), undefined);
});
