import type { ApplicationConfig } from './model.ts';

/** Publishers that viewers get streams from in clear, and their names. */
const CLEAR = {
  webrtc: 'WebRTC',
  hls: 'HLS',
  srt: 'SRT',
  rtsp: 'RTSP',
  rtmp: 'RTMP',
  flv: 'FLV',
  ovt: 'OVT',
  thumbnail: 'Thumbnail',
  playback: 'Playback',
} as const;

/** Whether an application closes its publishers that would give away in clear what LL-HLS encrypts. */
export function refusesClear({ llhls }: ApplicationConfig['publishers']): boolean {
  return llhls?.drm?.enable === true && llhls.drm.refuseClear;
}

/** Warning about publishers of an application that give away in clear what LL-HLS encrypts; none where there are none. */
export function clearBesideDrm({ name, publishers }: ApplicationConfig): string[] {
  if (publishers.llhls?.drm?.enable !== true || refusesClear(publishers)) return [];
  const open = Object.entries(CLEAR).flatMap(([key, title]) =>
    publishers[key as keyof typeof CLEAR] === undefined ? [] : title,
  );
  if (open.length === 0) return [];
  return [`DRM of the application ${name} does not cover ${open.join(', ')}: RefuseClear closes them`];
}
