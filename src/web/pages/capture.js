/** Qualities of the video that can be chosen, with their limits. */
export const QUALITIES = {
  1080: { width: 1920, height: 1080, maxBitrate: 4_500_000 },
  720: { width: 1280, height: 720, maxBitrate: 2_500_000 },
  480: { width: 854, height: 480, maxBitrate: 1_200_000 },
};
const FRAMERATE = 30;

/** @type {Readonly<Record<string, string>>} */
const REASONS = {
  NotAllowedError: 'The browser did not allow the page to use that. Allow it beside the address, and try again.',
  NotFoundError: 'No camera or microphone was found.',
  NotReadableError: 'The camera or microphone is used by another program.',
  OverconstrainedError: 'That camera or microphone is not there any more.',
};

/** Whether browsers let this page have a camera at all: they do over HTTPS and from this very machine. */
export const canCapture = () => navigator.mediaDevices !== undefined && typeof RTCPeerConnection !== 'undefined';

/**
 * Captures the media to publish.
 * @typedef {keyof typeof QUALITIES} Quality
 * @param {{ source: string, camera: string, microphone: string, quality: Quality }} wanted `source`: `camera`, `screen` or
 *   `sound`; of devices their ids, '' for the default
 * @throws {Error} with a reason for the user
 */
export async function capture({ source, camera, microphone, quality }) {
  const { width, height } = QUALITIES[quality];
  const size = { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: FRAMERATE } };
  try {
    if (source === 'screen') return await captureScreen(size, microphone);
    return await navigator.mediaDevices.getUserMedia({
      audio: microphoneOf(microphone),
      video: source === 'camera' && { ...size, ...(camera && { deviceId: { exact: camera } }) },
    });
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    throw new Error(REASONS[name] ?? message, { cause: error });
  }
}

/** @param {string} id */
const microphoneOf = (id) => (id ? { deviceId: { exact: id } } : true);

/**
 * Captures the screen, with its own audio where the browser has it, else with the microphone, where there is one.
 * @param {MediaTrackConstraints} size
 * @param {string} microphone
 */
async function captureScreen(size, microphone) {
  const media = await navigator.mediaDevices.getDisplayMedia({ video: size, audio: true });
  if (media.getAudioTracks().length > 0) return media;
  const spoken = await navigator.mediaDevices
    .getUserMedia({ audio: microphoneOf(microphone) })
    .catch(() => new MediaStream());
  for (const track of spoken.getTracks()) media.addTrack(track);
  return media;
}

/**
 * Lists cameras or microphones. They have labels when the page was allowed to use one.
 * @param {MediaDeviceKind} kind
 */
export async function devices(kind) {
  const all = await navigator.mediaDevices.enumerateDevices();
  return all
    .filter((device) => device.kind === kind && device.deviceId !== '')
    .map(({ deviceId, label }, at) => ({ id: deviceId, label: label || `${at + 1}` }));
}

/** @param {MediaStream | undefined} media */
export function stopAll(media) {
  for (const track of media?.getTracks() ?? []) track.stop();
}
