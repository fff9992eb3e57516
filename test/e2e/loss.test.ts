import test from 'ava';
import { pino } from 'pino';
import { OvtClient } from '../../src/providers/ovt/client.ts';
import { long } from '../support/runner/long.ts';
import { FRAMERATE, HEIGHT, PERIOD, PICTURE, SOUND, WIDTH } from '../support/matrix/clip.ts';
import { judge, type Judgement } from '../support/matrix/judge.ts';
import { isWhole, recordingOf } from '../support/matrix/whep-recording.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Kiln } from '../support/server/kiln.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { relayedSdp } from '../support/webrtc/relayed-peer.ts';
import { faulty, UdpRelay } from '../support/network/udp-relay.ts';
import { until, untilWorks } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';
import { shared } from '../support/runner/shared.ts';

const BAD = { loss: 0.05, delayMs: 10, jitterMs: 100 };
/** Enough for a datagram, a report that it is missing, and another try that is lost, too, on a machine that stands still meanwhile. */
const LATENCY_MS = 4000;
const FRAMES = 8 * FRAMERATE;

interface Arrival {
  readonly frame: string;
  readonly at: number;
}

const undo = new Teardown();
test.after.always(() => undo.run());

/** The frames of a stream, by their bytes, and when they come. */
async function arrivals(url: string): Promise<Arrival[]> {
  const client = await untilWorks('OVT', () => OvtClient.connect(url, { log: pino({ level: 'silent' }) }));
  undo.teardown(() => client.close());
  const all: Arrival[] = [];
  await client.play({
    tracks: () => {},
    packet: ({ track, data }) =>
      void (track.type === 'video' && all.push({ frame: data.toString('latin1'), at: performance.now() })),
    end: () => {},
  });
  return all;
}

/** What came from where another begins on, all of it where that began first. Frames of one flash are like those of the next: a whole second is none. */
function since(begin: readonly Arrival[], all: readonly Arrival[]): readonly Arrival[] {
  const second = begin.slice(0, FRAMERATE);
  return all.slice(
    Math.max(
      0,
      all.findIndex((_, i) => second.every(({ frame }, j) => all[i + j]?.frame === frame)),
    ),
  );
}

/** A server that receives the same frames at the same moment over SRT twice: as `good`, and through loss and jitter as `bad`. */
async function receive() {
  const kiln = await Kiln.start({
    ovt: true,
    llhls: '<SegmentDuration>1</SegmentDuration><SegmentCount>60</SegmentCount>',
    srt: { in: `<Options><Option><Key>SRTO_RCVLATENCY</Key><Value>${LATENCY_MS}</Value></Option></Options>` },
  });
  undo.teardown(() => kiln.stop());
  const relay = await UdpRelay.open(kiln.ports.srt as number, faulty({ seed: 11, ...BAD }));
  undo.teardown(() => relay.close());
  const to = (port: number, name: string) =>
    `[f=mpegts]srt://127.0.0.1:${port}?streamid=default/app/${name}&pkt_size=1316&connect_timeout=30000&latency=${LATENCY_MS * 1000}`;
  const publisher = new Program('ffmpeg', [
    ...patternArguments({ source: PICTURE, sound: SOUND, rate: FRAMERATE, bitrate: '300k' }),
    '-map',
    '0:v',
    '-map',
    '1:a',
    '-f',
    'tee',
    `${to(kiln.ports.srt as number, 'good')}|${to(relay.port, 'bad')}`,
  ]);
  undo.teardown(() => publisher.stop());
  await Promise.all([kiln.liveStream('good'), kiln.liveStream('bad')]);
  const [good, bad] = (await Promise.all(['good', 'bad'].map((name) => arrivals(kiln.ovtUrl(name))))) as [
    Arrival[],
    Arrival[],
  ];
  return { kiln, good, bad, faults: relay.counts.toServer };
}

const received = shared(receive);

test.serial('LL-HLS plays a stream that SRT receives through 5 % loss and 100 ms of jitter, in step', async (t) => {
  const { kiln } = await received();
  const url = kiln.httpUrl('/app/bad/llhls.m3u8');
  await until('LL-HLS', async () => (await fetch(url)).status === 200);
  const { pictures, skews } = await judge({ from: url, seconds: 5 });
  t.true(pictures >= 4 * FRAMERATE);
  t.true(skews.length > 0 && skews.every((skew) => Math.abs(skew) < 0.1), skews.join());
});

test.serial('SRT loses no frame by 5 % loss and 100 ms of jitter, and delays none beyond its latency', async (t) => {
  const { good, bad, faults } = await received();
  await until('frames', () => bad.length > FRAMES && faults.lost > 20 && faults.overtaken > 20);
  // each was listened to from a key frame on, whichever of them earlier
  const [expected, came] = [since(bad, good), since(good, bad)];
  const both = came.flatMap((one, i) => (expected[i] === undefined ? [] : [{ came: one, expected: expected[i] }]));
  t.true(both.length > FRAMES / 2);
  t.is(
    both.findIndex((each) => each.came.frame !== each.expected.frame),
    -1,
    'every frame, in order',
  );
  const later = both.map((each) => each.came.at - each.expected.at);
  t.log(
    `${faults.lost} of ${faults.received} datagrams were lost; frames came ${Math.round(Math.min(...later))} to ${Math.round(Math.max(...later))} ms later`,
  );
  t.true(Math.max(...later) < LATENCY_MS, 'whatever was lost');
});

long('WHIP makes up for 5 % loss and 100 ms of jitter, for players of LL-HLS and viewers over WHEP', async (t) => {
  // sound and picture begin where the reports put them, and are not moved there bit by bit
  const whip = '<RtcpBasedTimestamp>true</RtcpBasedTimestamp>';
  const kiln = await Kiln.start({ whip, llhls: '<SegmentDuration>1</SegmentDuration><SegmentCount>60</SegmentCount>' });
  t.teardown(() => kiln.stop());
  const [video, sound] = await Promise.all([
    h264({ source: PICTURE, width: WIDTH, height: HEIGHT, fps: FRAMERATE, gop: FRAMERATE, seconds: PERIOD }),
    opus(PERIOD, 1, 'audio', 0, SOUND),
  ]);
  const peer = new PublisherPeer({
    exactReports: true,
    media: [video, { ...sound, frames: sound.frames.slice(0, PERIOD * 50) }],
  });
  t.teardown(() => peer.close());
  let relay: UdpRelay | undefined;
  t.teardown(() => relay?.close());
  await peer.publish(kiln.httpUrl('/app/live?direction=whip'), async (answer) => {
    const relayed = await relayedSdp(answer, faulty({ seed: 12, ...BAD }));
    ({ relay } = relayed);
    return relayed.description;
  });
  await kiln.liveStream('live');
  const url = kiln.httpUrl('/app/live/llhls.m3u8');
  await until('LL-HLS', async () => (await fetch(url)).status === 200);
  const viewer = new ViewerPeer();
  t.teardown(() => viewer.close());
  await viewer.play(kiln.httpUrl('/app/live?direction=whep'));
  const watched = async (): Promise<Judgement> => {
    await viewer.until(
      () => viewer.frames().length > FRAMES && viewer.sentAt() !== undefined && isWhole(viewer.packets.video),
    );
    return judge({ from: recordingOf(viewer, 'H264', true) });
  };
  const [played, seen] = await Promise.all([judge({ from: url, seconds: 8 }), watched()]);
  // what mediasoup reports of a way that wavers may be off by as much as that does
  for (const [{ pictures, skews }, most] of [
    [played, 0.1],
    [seen, 0.1 + BAD.jitterMs / 1000],
  ] as const) {
    t.log(
      `${pictures} pictures, ${relay?.counts.toServer.lost} datagrams were lost, off by ${skews.map((skew) => Math.round(skew * 1000)).join(', ')} ms`,
    );
    t.true(pictures >= 4 * FRAMERATE);
    t.true(skews.length > 0 && skews.every((skew) => Math.abs(skew) < most), skews.join());
  }
  t.true((relay?.counts.toServer.lost ?? 0) > 20);
});
