import { CONSTRUCT_BYTES } from './cc-data.ts';
import type { CaptionText } from './caption-text.ts';
import { Cea608Field } from './cea608.ts';
import { Cea708Service } from './cea708.ts';
import { DtvccPackets } from './dtvcc.ts';

const VALID = 0x04;
/** Types of constructs (CTA-708-E, table 3). */
const FIELD_2 = 1;
const PACKET_DATA = 2;
const PACKET_START = 3;
const CC = /^CC([1-4])$/;
const SERVICE = /^SERVICE([1-9]|[1-5]\d|6[0-3])$/;

/** Whether a name is that of a channel: as INSTREAM-ID has them, CC1 to CC4 and SERVICE1 to SERVICE63 (RFC 8216bis, 4.4.6.1). */
export function isCaptionChannel(name: string): boolean {
  return CC.test(name) || SERVICE.test(name);
}

/** Decodes the closed captions of a video: the four channels of CEA-608, and the services of CEA-708 that are asked for. */
export class CaptionDecoder {
  readonly #fields = [new Cea608Field(), new Cea608Field()] as const;
  readonly #packets = new DtvccPackets();
  /** By number. */
  readonly #services = new Map<number, Cea708Service>();
  readonly #usedServices = new Set<number>();

  /** @param channels whose texts are asked for */
  constructor(channels: readonly string[] = []) {
    for (const channel of channels) {
      const [, number] = SERVICE.exec(channel) ?? [];
      if (number !== undefined) this.#services.set(Number(number), new Cea708Service());
    }
  }

  /** Channels that have had captions: in the order CC1 to CC4, SERVICE1 to SERVICE63. */
  get used(): string[] {
    const ofFields = [1, 2, 3, 4].filter((number) => this.#fieldOf(number).isUsed((number - 1) % 2));
    const services = [...this.#usedServices].sort((one, other) => one - other);
    return [...ofFields.map((number) => `CC${number}`), ...services.map((number) => `SERVICE${number}`)];
  }

  /** Takes the constructs of cc_data of a frame; frames in the order in which they are shown. */
  push(data: Buffer): void {
    for (let at = 0; at + CONSTRUCT_BYTES <= data.length; at += CONSTRUCT_BYTES) {
      const [marker = 0, first = 0, second = 0] = data.subarray(at, at + CONSTRUCT_BYTES);
      if ((marker & VALID) === 0) continue;
      const type = marker & 3;
      if (type < PACKET_DATA) this.#fields[type === FIELD_2 ? 1 : 0].push(first, second);
      else this.#pushPair(type === PACKET_START, first, second);
    }
  }

  /** Texts that a channel shows. */
  texts(channel: string): CaptionText[] {
    const [, number] = CC.exec(channel) ?? [];
    if (number !== undefined) return this.#fieldOf(Number(number)).texts((Number(number) - 1) % 2);
    return this.#serviceOf(channel)?.texts() ?? [];
  }

  /** Number that is another when the texts of a channel may be others. */
  revision(channel: string): number {
    const [, number] = CC.exec(channel) ?? [];
    if (number !== undefined) return this.#fieldOf(Number(number)).screen((Number(number) - 1) % 2)?.revision ?? 0;
    return this.#serviceOf(channel)?.revision ?? 0;
  }

  #pushPair(isStart: boolean, first: number, second: number): void {
    for (const { service, data } of this.#packets.push(isStart, first, second)) {
      this.#usedServices.add(service);
      this.#services.get(service)?.push(data);
    }
  }

  #fieldOf(number: number): Cea608Field {
    return this.#fields[number <= 2 ? 0 : 1];
  }

  #serviceOf(channel: string): Cea708Service | undefined {
    return this.#services.get(Number(SERVICE.exec(channel)?.[1] ?? 0));
  }
}
