import type { Access } from '../../access/access.ts';
import type { ApplicationConfig } from '../../config/model.ts';
import type { RtspLink, RtspPart, RtspService } from '../../rtsp/part.ts';
import { RtspRecorder } from './recorder.ts';

/** Accepts publishers over RTSP. Their connections are those of `RtspPorts`. */
export class RtspProvider implements RtspService {
  readonly direction = 'incoming';
  readonly methods = ['ANNOUNCE', 'RECORD'];
  readonly #access: Access;

  constructor(access: Access) {
    this.#access = access;
  }

  isUsedBy({ providers }: ApplicationConfig): boolean {
    return providers.rtsp !== undefined;
  }

  open(link: RtspLink): RtspPart {
    return new RtspRecorder(link, (asked) =>
      this.#access.admitPublisher({ ...asked, direction: 'incoming', protocol: 'rtsp' }),
    );
  }
}
