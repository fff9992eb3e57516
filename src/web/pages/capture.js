/** Pictures that can be asked for, and what they are sent with at most. */
export const QUALITIES = {
  1080: { width: 1920, height: 1080, maxBitrate: 4_500_000 },
  720: { width: 1280, height: 720, maxBitrate: 2_500_000 },
  480: { width: 854, height: 480, maxBitrate: 1_200_000 },
};
const FRAMERATE = 30;

const REASONS = {
  NotAllowedError: 'The browser did not allow the page to use that. Allow it beside the address, and try again.',
  NotFoundError: 'No camera or microphone was found.',
  NotReadableError: 'The camera or microphone is used by another program.',
  OverconstrainedError: 'That camera or microphone is not there any more.',
};

/** Whether browsers let this page have a camera at all: they do over HTTPS and from this very machine. */
export const canCapture = () => navigator.mediaDevices !== undefined && typeof RTCPeerConnection !== 'undefined';

/**
 * Takes what is to be published.
 * @param source `camera`, `screen` or `sound`
 * @throws Error with a reason for the user
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
    throw new Error(REASONS[error.name] ?? error.message, { cause: error });
  }
}

const microphoneOf = (id) => (id ? { deviceId: { exact: id } } : true);

/** The sound of what is shown where the browser has it, else the microphone, where there is one. */
async function captureScreen(size, microphone) {
  const media = await navigator.mediaDevices.getDisplayMedia({ video: size, audio: true });
  if (media.getAudioTracks().length > 0) return media;
  const sound = await navigator.mediaDevices
    .getUserMedia({ audio: microphoneOf(microphone) })
    .catch(() => new MediaStream());
  for (const track of sound.getTracks()) media.addTrack(track);
  return media;
}

/** Cameras and microphones by `{ id, label }`; they have labels when the page was allowed to use one. */
export async function devices(kind) {
  const all = await navigator.mediaDevices.enumerateDevices();
  return all
    .filter((device) => device.kind === kind && device.deviceId !== '')
    .map(({ deviceId, label }, at) => ({ id: deviceId, label: label || `${at + 1}` }));
}

export function stopAll(media) {
  for (const track of media?.getTracks() ?? []) track.stop();
}
