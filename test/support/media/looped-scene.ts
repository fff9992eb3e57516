import { aac } from './aac.ts';
import { h264 } from '../webrtc/webrtc-media.ts';

/** As long as whole frames of both last, so that it can be looped. */
const SECONDS = 3.2;

/** A small scene of video and audio for a `MediaPublisher`, with a key frame each second or so. */
export async function loopedScene() {
  return {
    video: await h264({ width: 160, height: 90, fps: 15, gop: 16, seconds: SECONDS, kbit: 100 }),
    audio: await aac(440, {}, SECONDS),
  };
}
