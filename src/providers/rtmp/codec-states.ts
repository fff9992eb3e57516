import { BitstreamError } from '../../codecs/bits.ts';

interface CodecState {
  configure(record: Buffer): void;
}

interface CodedTag<C> {
  readonly codec: C;
  readonly packet: 'config' | 'frame' | 'end';
  readonly data: Buffer;
}

/** Real ones have some hundred bytes, and each track keeps its own. */
const MAX_RECORD_BYTES = 64 * 1024;

/** The state of the codec that a track has now. */
export class CodecStates<C extends string, S extends CodecState> {
  readonly #make: (codec: C) => S;
  #codec: C | undefined;
  #state: S | undefined;

  constructor(make: (codec: C) => S) {
    this.#make = make;
  }

  /**
   * The state that a tag belongs to, new when the codec is another; it takes the tag's configuration.
   * @throws BitstreamError when that is malformed
   */
  take({ codec, packet, data }: CodedTag<C>): S {
    if (this.#state === undefined || this.#codec !== codec) {
      this.#state = this.#make(codec);
      this.#codec = codec;
    }
    if (packet === 'config') {
      if (data.length > MAX_RECORD_BYTES) throw new BitstreamError(`${codec} configuration of too many bytes`);
      this.#state.configure(data);
    }
    return this.#state;
  }
}
