/** A parsed RTP packet: the judge of what the server sends, written against the RFCs and not against its writers. */
export interface Rtp {
  readonly marker: boolean;
  readonly payloadType: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly ssrc: number;
  /** Elements of a one-byte header extension, by identifier. */
  readonly extensions: ReadonlyMap<number, Buffer>;
  readonly payload: Buffer;
}

/** RFC 3550 section 5.1, RFC 8285 section 4.2. */
export function parseRtp(packet: Buffer): Rtp {
  const first = packet.readUInt8(0);
  if (first >> 6 !== 2) throw new Error('not RTP version 2');
  let at = 12 + (first & 15) * 4;
  const extensions = new Map<number, Buffer>();
  if (first & 0x10) {
    const size = packet.readUInt16BE(at + 2) * 4;
    if (packet.readUInt16BE(at) === 0xbede) readExtensions(packet.subarray(at + 4, at + 4 + size), extensions);
    at += 4 + size;
  }
  const padding = first & 0x20 ? packet.readUInt8(packet.length - 1) : 0;
  return {
    marker: (packet.readUInt8(1) & 0x80) !== 0,
    payloadType: packet.readUInt8(1) & 0x7f,
    sequence: packet.readUInt16BE(2),
    timestamp: packet.readUInt32BE(4),
    ssrc: packet.readUInt32BE(8),
    extensions,
    payload: packet.subarray(at, packet.length - padding),
  };
}

/** An instant by a sender's wall clock, in seconds, and in RTP time. */
export interface SentAt {
  readonly ssrc: number;
  readonly seconds: number;
  readonly rtpTime: number;
}

/** What the sender reports of a compound packet tell (RFC 3550 section 6.4.1). */
export function parseSenderReports(packet: Buffer): SentAt[] {
  const reports: SentAt[] = [];
  for (let at = 0; at + 4 <= packet.length; at += 4 * (packet.readUInt16BE(at + 2) + 1)) {
    if (packet.readUInt8(at + 1) !== 200) continue;
    const [ssrc, seconds, fraction, rtpTime] = [4, 8, 12, 16].map((offset) => packet.readUInt32BE(at + offset)) as [
      number,
      number,
      number,
      number,
    ];
    reports.push({ ssrc, seconds: seconds + fraction / 2 ** 32, rtpTime });
  }
  return reports;
}

function readExtensions(data: Buffer, into: Map<number, Buffer>): void {
  for (let at = 0; at < data.length;) {
    const byte = data.readUInt8(at);
    if (byte === 0) {
      at++;
      continue;
    }
    const size = (byte & 15) + 1;
    into.set(byte >> 4, data.subarray(at + 1, at + 1 + size));
    at += 1 + size;
  }
}

/** NAL units of RTP payloads (RFC 6184 sections 5.6 to 5.8): single, STAP-A, FU-A. */
export function depacketizeH264(payloads: readonly Buffer[]): Buffer[] {
  const nals: Buffer[] = [];
  let fragments: Buffer[] | undefined;
  for (const payload of payloads) {
    const type = payload.readUInt8(0) & 0x1f;
    if (type === 24) {
      for (let at = 1; at < payload.length;) {
        const size = payload.readUInt16BE(at);
        if (at + 2 + size > payload.length) throw new Error('a unit runs past its STAP-A');
        nals.push(payload.subarray(at + 2, at + 2 + size));
        at += 2 + size;
      }
    } else if (type === 28) {
      const indicator = payload.readUInt8(0);
      const header = payload.readUInt8(1);
      if (header & 0x80) fragments = [Buffer.of((indicator & 0xe0) | (header & 0x1f))];
      if (fragments === undefined) throw new Error('a fragment without its start');
      fragments.push(payload.subarray(2));
      if (header & 0x40) {
        nals.push(Buffer.concat(fragments));
        fragments = undefined;
      }
    } else {
      nals.push(payload);
    }
  }
  if (fragments !== undefined) throw new Error('a fragmented unit without its end');
  return nals;
}

/** NAL units of RTP payloads (RFC 7798 section 4.4): single, AP, FU, without decoding order numbers. */
export function depacketizeH265(payloads: readonly Buffer[]): Buffer[] {
  const nals: Buffer[] = [];
  let fragments: Buffer[] | undefined;
  for (const payload of payloads) {
    const type = (payload.readUInt8(0) >> 1) & 0x3f;
    if (type === 48) {
      for (let at = 2; at < payload.length;) {
        const size = payload.readUInt16BE(at);
        if (at + 2 + size > payload.length) throw new Error('a unit runs past its AP');
        nals.push(payload.subarray(at + 2, at + 2 + size));
        at += 2 + size;
      }
    } else if (type === 49) {
      const header = payload.readUInt8(2);
      const first = (payload.readUInt8(0) & 0x81) | ((header & 0x3f) << 1);
      if (header & 0x80) fragments = [Buffer.of(first, payload.readUInt8(1))];
      if (fragments === undefined) throw new Error('a fragment without its start');
      fragments.push(payload.subarray(3));
      if (header & 0x40) {
        nals.push(Buffer.concat(fragments));
        fragments = undefined;
      }
    } else {
      nals.push(payload);
    }
  }
  if (fragments !== undefined) throw new Error('a fragmented unit without its end');
  return nals;
}

/** A VP8 frame of RTP payloads and its picture id (RFC 7741 section 4.2). */
export function depacketizeVp8(payloads: readonly Buffer[]): { pictureId: number; frame: Buffer } {
  let pictureId = -1;
  const parts = payloads.map((payload, index) => {
    const first = payload.readUInt8(0);
    if (((first & 0x10) !== 0) !== (index === 0)) throw new Error('the start of the partition is not where it says');
    let at = 1;
    if (first & 0x80) {
      const flags = payload.readUInt8(at++);
      if (flags & 0x80) {
        const long = (payload.readUInt8(at) & 0x80) !== 0;
        pictureId = long ? payload.readUInt16BE(at) & 0x7fff : payload.readUInt8(at);
        at += long ? 2 : 1;
      }
      if (flags & 0x40) at++;
      if (flags & 0x30) at++;
    }
    return payload.subarray(at);
  });
  return { pictureId, frame: Buffer.concat(parts) };
}

export interface Vp9Frame {
  readonly pictureId: number;
  readonly interPredicted: boolean;
  readonly size: { readonly width: number; readonly height: number } | undefined;
  readonly frame: Buffer;
}

/** A VP9 frame of RTP payloads, non-flexible mode without layer indices (RFC 9628 section 4.2). */
export function depacketizeVp9(payloads: readonly Buffer[]): Vp9Frame {
  let pictureId = -1;
  let interPredicted = false;
  let size: Vp9Frame['size'];
  const parts = payloads.map((payload, index) => {
    const first = payload.readUInt8(0);
    if ((first & 0x30) !== 0) throw new Error('layers or flexible mode');
    if (((first & 0x08) !== 0) !== (index === 0)) throw new Error('the start of the frame is not where it says');
    if (((first & 0x04) !== 0) !== (index === payloads.length - 1))
      throw new Error('the end of the frame is not where it says');
    interPredicted = (first & 0x40) !== 0;
    let at = 1;
    if (first & 0x80) {
      const long = (payload.readUInt8(at) & 0x80) !== 0;
      pictureId = long ? payload.readUInt16BE(at) & 0x7fff : payload.readUInt8(at);
      at += long ? 2 : 1;
    }
    if (first & 0x02) {
      const structure = payload.readUInt8(at++);
      if (structure >> 5 !== 0) throw new Error('more than one spatial layer');
      if (structure & 0x10) {
        size = { width: payload.readUInt16BE(at), height: payload.readUInt16BE(at + 2) };
        at += 4;
      }
      if (structure & 0x08) throw new Error('a picture group');
    }
    return payload.subarray(at);
  });
  return { pictureId, interPredicted, size, frame: Buffer.concat(parts) };
}

/** OBUs (without sizes) of the RTP payloads of a temporal unit (RTP Payload Format For AV1, section 4). */
export function depacketizeAv1(payloads: readonly Buffer[]): { newSequence: boolean; obus: Buffer[] } {
  const obus: Buffer[] = [];
  let open: Buffer[] | undefined;
  let newSequence = false;
  payloads.forEach((payload, index) => {
    const header = payload.readUInt8(0);
    const count = (header >> 4) & 3;
    if (header & 0x08) {
      if (index !== 0) throw new Error('a sequence begins in the middle');
      newSequence = true;
    }
    if (((header & 0x80) !== 0) !== (open !== undefined)) throw new Error('a continuation that does not fit');
    const elements: Buffer[] = [];
    for (let at = 1; at < payload.length;) {
      let size = payload.length - at;
      if (count === 0 || elements.length < count - 1) {
        size = 0;
        for (let shift = 0; ; shift += 7) {
          const byte = payload.readUInt8(at++);
          size |= (byte & 0x7f) << shift;
          if (byte < 0x80) break;
        }
      }
      if (size === 0 || at + size > payload.length) throw new Error('an element runs past its packet');
      elements.push(payload.subarray(at, at + size));
      at += size;
    }
    elements.forEach((element, position) => {
      const parts: Buffer[] = position === 0 && open !== undefined ? open : [];
      parts.push(element);
      const continued = position === elements.length - 1 && (header & 0x40) !== 0;
      open = continued ? parts : undefined;
      if (!continued) obus.push(Buffer.concat(parts));
    });
  });
  if (open !== undefined) throw new Error('an OBU without its end');
  return { newSequence, obus };
}
