import test from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { BYPASS, OPUS, ladderXml, video } from '../support/media/ladder-config.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';

const rendition = (name: string, track: string) =>
  `<Rendition><Name>${name}</Name><Video>${track}</Video><Audio>opus</Audio></Rendition>`;
const PLAYLISTS =
  '<Playlist><Name>choice</Name><FileName>choice</FileName><Options><WebRtcAutoAbr>false</WebRtcAutoAbr></Options>' +
  `${rendition('best', 'source')}${rendition('least', '90p')}</Playlist>`;
/** Changes of the rendition at which time goes on, and how many may be tried for it. */
const CHANGES = 6;
const MOST_CHANGES = 30;

/** Ticks from each frame to the next one. */
function steps(peer: ViewerPeer): number[] {
  const times = peer.frames().map(({ timestamp }) => timestamp);
  return times.slice(1).map((time, index) => (time - (times[index] as number)) | 0);
}

test('between a source that passes and what an encoder makes of it time goes on, whichever is left', async (t) => {
  const kiln = await Kiln.start({ application: ladderXml([BYPASS, video(90, 80), OPUS], { playlists: PLAYLISTS }) });
  t.teardown(() => kiln.stop());
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '320x180', bitrate: '300k', gop: 15 });
  t.teardown(() => publisher.stop());
  await kiln.liveStream('live');

  const client = await SignallingClient.open(`${kiln.httpUrl('/app/live/choice').replace('http', 'ws')}`);
  t.teardown(() => client.socket.terminate());
  client.send({ command: 'request_offer' });
  const offer = await client.command('offer');
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  const sdp = await peer.answerTo(offer?.sdp?.sdp ?? '');
  client.send({ command: 'answer', id: offer?.id, peer_id: 0, sdp: { type: 'answer', sdp } });
  await peer.until(() => peer.frames().length >= 90);
  let inOrder = 0;
  for (let change = 0; inOrder < CHANGES; change++) {
    // on a busy machine an encoder may be later than renditions are held back for it
    t.true(change < MOST_CHANGES, steps(peer).join(' '));
    const name = change % 2 === 0 ? 'least' : 'best';
    const told = client.after(({ type, message }) => type === 'rendition_changed' && message?.rendition_name === name);
    const before = steps(peer).length;
    client.send({ command: 'change_rendition', id: offer?.id, rendition_name: name });
    t.deepEqual((await told)?.message as unknown, { rendition_name: name, auto: false });
    const from = peer.frames().length;
    await peer.until(() => peer.frames().length >= from + 10);
    if (
      steps(peer)
        .slice(before)
        .every((step) => step > 0)
    )
      inOrder++;
  }
  const sequence = peer.packets.video.map((packet) => packet.sequence);
  t.true(sequence.slice(1).every((number, index) => ((number - (sequence[index] as number)) & 0xffff) === 1));
  await until('sound of the encoder', () => peer.packets.audio.length > 100);
});
