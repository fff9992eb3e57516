import type { Application } from '../core/application.ts';
import type { AlertMessage, Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import { ENDED, GOOD } from './recovery.ts';

/** Interval between looks at all streams. */
const LOOK_MS = 2000;
/** Time without a key frame after which video counts as having none; encoders seldom have them further apart. */
const MAX_WITHOUT_MS = 4000;

const OPEN_GOPS: AlertMessage = {
  code: 'INGRESS_OPEN_GOP',
  description:
    'The key frames of the ingress stream are not IDR pictures (open GOPs, or a gradual refresh): browsers that join may show nothing. The encoder should make closed GOPs',
};
const NO_KEY_FRAMES: AlertMessage = {
  code: 'INGRESS_NO_KEY_FRAME',
  description:
    'The video of the ingress stream has no key frame: neither an IDR picture nor a recovery point has come, so no viewer can begin to decode it',
};

interface Watched {
  readonly application: Application;
  /** Time of the first look at a video track without any key frame. */
  waitingSince: number | undefined;
  raised: AlertMessage | undefined;
}

/**
 * Raises an alert when the video of an input stream of this node has no frame at which decoding can start, and when it has
 * none at which browsers start: once, and again after a recovery.
 */
export class KeyFrameWatch {
  readonly #registry: Registry;
  readonly #streams = new Map<InputStream, Watched>();
  readonly #timer: NodeJS.Timeout;

  constructor(registry: Registry) {
    this.#registry = registry;
    registry.on('input', this.#onInput);
    this.#timer = setInterval(() => this.look(performance.now()), LOOK_MS).unref();
  }

  readonly #onInput = (input: InputStream, application: Application): void => {
    if (input.isRelay) return;
    this.#streams.set(input, { application, waitingSince: undefined, raised: undefined });
    input.once('close', () => {
      const watched = this.#streams.get(input);
      this.#streams.delete(input);
      if (watched?.raised !== undefined) this.#raise(input, watched, ENDED);
    });
  };

  /** Checks all streams. @param now milliseconds of the monotonic clock */
  look(now: number): void {
    for (const [input, watched] of this.#streams) {
      const found = this.#judge(input, watched, now);
      if (found === watched.raised) continue;
      watched.raised = found;
      this.#raise(input, watched, found ?? GOOD);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#registry.off('input', this.#onInput);
    this.#streams.clear();
  }

  #judge(input: InputStream, watched: Watched, now: number): AlertMessage | undefined {
    let isWaiting = false;
    let isOpen = false;
    for (const { id, type } of input.tracks) {
      const measured = type === 'video' ? input.measured(id) : undefined;
      if (measured === undefined || measured.frames === 0) continue;
      isWaiting ||= measured.keyFrames === 'none';
      isOpen ||= measured.keyFrames === 'open';
    }
    if (!isWaiting) watched.waitingSince = undefined;
    else watched.waitingSince ??= now;
    if (watched.waitingSince !== undefined && now - watched.waitingSince >= MAX_WITHOUT_MS) return NO_KEY_FRAMES;
    return isOpen ? OPEN_GOPS : undefined;
  }

  #raise(stream: InputStream, { application }: Watched, message: AlertMessage): void {
    const resolved = message === GOOD || message === ENDED;
    this.#registry.emit('alert', {
      ...{ application, stream, name: stream.name, type: 'INGRESS', messages: [message] },
      ...(resolved && { resolved }),
    });
  }
}
