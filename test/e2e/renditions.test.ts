import test, { type ExecutionContext } from 'ava';
import type { Playlist } from '../../src/core/playlist.ts';
import type { WebrtcSession } from '../../src/publishers/webrtc/session.ts';
import { depacketizeH264, depacketizeVp8 } from '../support/webrtc/rtp.ts';
import { ladder, ladderPlaylist } from '../support/media/ladder.ts';
import { LiveStream, type LiveMedia } from '../support/server/live-stream.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { PEER_TYPES } from '../support/webrtc/peer-types.ts';
import { ViewerPeer, type Frame } from '../support/webrtc/viewer-peer.ts';
import { ivf, opus } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc, type WebrtcServerOptions } from '../support/webrtc/webrtc-server.ts';

const [high, mid, low] = (await ladder([
  { name: 'high', width: 320, height: 180, kbit: 500 },
  { name: 'mid', width: 240, height: 136, kbit: 250 },
  { name: 'low', width: 160, height: 90, kbit: 80 },
])) as [LiveMedia, LiveMedia, LiveMedia];
const sound = await opus();
const OPTIONS = ladderPlaylist([]).options;

async function start(
  t: ExecutionContext,
  media: readonly LiveMedia[],
  playlist: Playlist,
  options: WebrtcServerOptions = {},
) {
  const server = await startWebrtc(t, options);
  const live = new LiveStream(server.registry, media);
  t.teardown(() => live.close());
  live.output.addPlaylist(playlist);
  const play = async () => {
    const client = await SignallingClient.open(`ws://127.0.0.1:${server.port}/app/stream/${playlist.fileName}`);
    t.teardown(() => client.socket.terminate());
    client.send({ command: 'request_offer' });
    const offer = await client.command('offer');
    const peer = new ViewerPeer();
    t.teardown(() => peer.close());
    const sdp = await peer.answerTo(offer?.sdp?.sdp ?? '');
    client.send({ command: 'answer', id: offer?.id, peer_id: 0, sdp: { type: 'answer', sdp } });
    await client.next(({ type }) => type === 'playlist');
    /** Asks, and resolves when the server says so. */
    const change = async (request: { rendition_name?: string; auto?: boolean }, to = request.rendition_name) => {
      const told = client.after(({ type, message }) => type === 'rendition_changed' && message?.rendition_name === to);
      client.send({ command: 'change_rendition', id: offer?.id, ...request });
      return (await told)?.message;
    };
    return { client, peer, change };
  };
  return { ...server, live, play };
}

/** Which of several media a frame belongs to. */
function sourceOf({ payloads }: Frame, media: readonly LiveMedia[]): string | undefined {
  const nal = depacketizeH264(payloads).at(-1) as Buffer;
  return media.find(({ frames }) => frames.some(({ data }) => data.subarray(-nal.length).equals(nal)))?.track.name;
}

/** Waits until the newest of a peer's frames all belong to one of several media. */
const shows = (peer: ViewerPeer, name: string, media: readonly LiveMedia[]) =>
  peer.until(() => {
    const newest = peer.frames().slice(-10);
    return newest.length === 10 && newest.every((frame) => sourceOf(frame, media) === name);
  });

/** RTP time from each frame to the next. */
function steps(peer: ViewerPeer): number[] {
  const times = peer.frames().map(({ timestamp }) => timestamp);
  return times.slice(1).map((time, index) => (time - (times[index] as number)) | 0);
}

const hold = (peer: ViewerPeer, frames: number) => {
  const from = peer.frames().length;
  return peer.until(() => peer.frames().length >= from + frames);
};

for (const [what, lags] of [
  ['all at once', [0, 0, 0]],
  ['the best one first', [0, 0.06, 0.12]],
  ['the best one last', [0.15, 0.02, 0]],
] as const) {
  test.serial(
    `a viewer changes up and down among renditions that come ${what}: time never steps back, no frame is torn`,
    async (t) => {
      const media = [high, mid, low].map((one, index) => ({ ...one, lag: lags[index] ?? 0 }));
      const { play } = await start(
        t,
        [...media, sound],
        ladderPlaylist(['high', 'mid', 'low'], { webrtcAutoAbr: false }),
      );
      const { peer, change } = await play();
      await hold(peer, 90);
      const order = ['low', 'high', 'mid', 'low', 'mid', 'high', 'low', 'high'];
      for (const name of order) {
        t.deepEqual(await change({ rendition_name: name }), { rendition_name: name, auto: false });
        await shows(peer, name, media);
      }
      const got = peer.frames().map((frame) => sourceOf(frame, media));
      const changes = got.filter((name, index) => name !== got[index - 1]);
      t.deepEqual(changes.slice(-order.length - 1), ['high', ...order]);
      t.true(
        steps(peer).every((step) => step > 0 && step < 9000),
        `${steps(peer)
          .filter((step) => step !== 3000)
          .join(' ')}`,
      );
      const sequence = peer.packets.video.map((packet) => packet.sequence);
      t.true(sequence.slice(1).every((number, index) => ((number - (sequence[index] as number)) & 0xffff) === 1));
    },
  );
}

test.serial('VP8 renditions are layers too', async (t) => {
  const steady = await Promise.all(
    [
      ['high', 320, 180],
      ['low', 160, 90],
    ].map(([name, width, height], index) =>
      ivf('VP8', { name: name as string, id: 10 + index, width: width as number, height: height as number }),
    ),
  );
  const { play } = await start(t, [...steady, sound], ladderPlaylist(['high', 'low'], { webrtcAutoAbr: false }));
  const { peer, change } = await play();
  await hold(peer, 60);
  for (const name of ['low', 'high', 'low']) await change({ rendition_name: name });
  await peer.until(() => {
    const { frame } = depacketizeVp8(peer.frames().at(-1)?.payloads ?? []);
    return steady[1]?.frames.some(({ data }) => data.equals(frame)) === true;
  });
  t.true(steps(peer).every((step) => step > 0 && step < 9000));
});

test.serial('names that are not there change nothing; auto goes off with a name and on by word', async (t) => {
  const { play } = await start(t, [high, low, sound], ladderPlaylist(['high', 'low']));
  const { client, change } = await play();
  t.true(client.received.find(({ type }) => type === 'playlist')?.message?.auto);
  t.deepEqual(await change({ rendition_name: 'low' }), { rendition_name: 'low', auto: false });
  t.deepEqual(await change({ rendition_name: 'absent' }, 'low'), { rendition_name: 'low', auto: false });
  t.deepEqual(await change({ rendition_name: 'high', auto: true }, 'high').then((message) => message?.auto), true);
  t.deepEqual(await change({ auto: false }, 'high'), { rendition_name: 'high', auto: false });
  t.deepEqual(await change({ rendition_name: 'low' }), { rendition_name: 'low', auto: false });
});

test.serial(
  'each viewer has a rendition and a language of their own, and sound goes on when that changes',
  async (t) => {
    const english = await opus(2, 21, 'english', 440);
    const german = { ...(await opus(2, 22, 'german', 880)), lag: 0.05 };
    const renditions = ['high', 'low'].flatMap((video) =>
      ['english', 'german'].map((audio) => ({
        name: `${video} ${audio}`,
        videoVariantName: video,
        audioVariantName: audio,
      })),
    );
    const playlist = { name: 'both', fileName: 'both', options: { ...OPTIONS, webrtcAutoAbr: false }, renditions };
    const { play, live } = await start(t, [high, low, english, german], playlist);
    const [one, other] = [await play(), await play()];
    await hold(one.peer, 60);
    const language = (peer: ViewerPeer) => {
      const payload = peer.packets.audio.at(-1)?.payload as Buffer;
      return [english, german].find(({ frames }) => frames.some(({ data }) => data.equals(payload)))?.track.name;
    };
    for (const name of ['high german', 'low german', 'low english', 'high german']) {
      await one.change({ rendition_name: name });
      await one.peer.until(() => language(one.peer) === name.split(' ')[1]);
      t.is(language(other.peer), 'english');
    }
    for (const { peer } of [one, other]) {
      const { audio } = peer.packets;
      const next = audio.slice(1).map((packet, index) => ({ packet, before: audio[index] as typeof packet }));
      t.true(next.every(({ packet, before }) => ((packet.sequence - before.sequence) & 0xffff) === 1));
      t.true(next.every(({ packet, before }) => ((packet.timestamp - before.timestamp) | 0) > 0));
      t.is(new Set(audio.map(({ ssrc }) => ssrc)).size, 1);
    }
    live.close();
    await one.client.end();
  },
);

test.serial('a rendition that is only heard stops the picture, and the sound is that of the rendition', async (t) => {
  const playlist = ladderPlaylist(['high', 'low'], { webrtcAudioOnlyFallback: true });
  const { play } = await start(t, [high, low, sound], {
    ...playlist,
    renditions: [...playlist.renditions, { name: 'sound', audioVariantName: 'audio' }],
  });
  const { peer, change } = await play();
  await hold(peer, 10);
  t.deepEqual(await change({ rendition_name: 'sound' }), { rendition_name: 'sound', auto: false });
  await peer.soundAlone();
  t.deepEqual(await change({ rendition_name: 'low' }), { rendition_name: 'low', auto: false });
  await hold(peer, 10);
  t.true(steps(peer).every((step) => step > 0));
});

test.serial('a viewer by WHEP gets the first codec that the offer takes, and its first rendition', async (t) => {
  const vp8 = await ivf('VP8', { id: 30, name: 'vp8' });
  const { url } = await start(t, [vp8, high, low, sound], ladderPlaylist(['vp8', 'low', 'high']));
  for (const [video, type] of [
    ['H264', PEER_TYPES.H264],
    ['VP8', PEER_TYPES.VP8],
  ] as const) {
    const peer = new ViewerPeer({ video });
    t.teardown(() => peer.close());
    await peer.play(`${url}/app/stream/ladder`);
    await hold(peer, 10);
    t.true(peer.packets.video.every(({ payloadType }) => payloadType === type));
    if (video === 'VP8') continue;
    await shows(peer, 'low', [high, low]);
  }
});

test.serial('a rendition that was away, which no link is to blame for, is there again at once', async (t) => {
  const { play, live } = await start(t, [high, low, sound], ladderPlaylist(['high', 'low']));
  const { peer, client } = await play();
  const changed = (name: string) =>
    client.after(({ type, message }) => type === 'rendition_changed' && message?.rendition_name === name);
  // a busy machine may have made the link look narrow
  await shows(peer, 'high', [high, low]);
  const [away, back] = [changed('low'), changed('high')];
  live.mute('high');
  await away;
  live.mute('high', false);
  const before = peer.frames().length;
  await back;
  // it may have to wait for a key frame, not the ten seconds that a link that failed has to
  t.true(peer.frames().length - before < 9 * 30);
});

test.serial('a viewer who goes before the worker has done what was asked is no fault', async (t) => {
  const { play, live, pool } = await start(t, [high, low, sound], ladderPlaylist(['high', 'low']), { workers: 1 });
  const { peer } = await play();
  await hold(peer, 10);
  const [session] = live.output.sessions.values() as IterableIterator<WebrtcSession>;
  const [worker] = pool.workers;
  if (session === undefined || worker === undefined) throw new Error('nothing plays');
  process.kill(worker.pid, 'SIGSTOP');
  const answers = [
    session.changeRendition('low', undefined),
    session.changeRendition('high', undefined),
    session.changeRendition(undefined, true),
  ];
  session.close('the viewer left');
  process.kill(worker.pid, 'SIGCONT');
  for (const answer of answers) await t.notThrowsAsync(answer);
});

test.serial(
  'a rendition that goes leaves its viewers another, and one that comes later is there for earlier viewers',
  async (t) => {
    const { play, live } = await start(
      t,
      [high, low, sound],
      ladderPlaylist(['high', 'low'], { webrtcAutoAbr: false }),
    );
    const { output } = live;
    const [highTrack, lowTrack, audio] = output.tracks as [LiveMedia['track'], LiveMedia['track'], LiveMedia['track']];
    output.setAwaited([{ ...lowTrack, encoder: { module: 'x264', status: undefined } }]);
    output.setTracks([highTrack, audio]);
    const { peer, client, change } = await play();
    t.deepEqual(
      client.received.find(({ type }) => type === 'playlist')?.message?.renditions?.map(({ name }) => name),
      ['high', 'low'],
    );
    output.setAwaited([]);
    output.setTracks([highTrack, lowTrack, audio]);
    await change({ rendition_name: 'low' });
    await change({ rendition_name: 'high' });
    const changed = client.after(
      ({ type, message }) => type === 'rendition_changed' && message?.rendition_name === 'low',
    );
    live.mute('high');
    output.setTracks([lowTrack, audio]);
    t.is((await changed)?.message?.rendition_name, 'low');
    t.is(output.sessions.size, 1);
    await shows(peer, 'low', [high, low]);
  },
);
