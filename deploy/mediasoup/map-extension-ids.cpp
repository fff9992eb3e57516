// Part of mediasoup's Packet.cpp in the worker that deploy/build-mediasoup-worker builds.
//
// mediasoup writes header extensions of forwarded packets under numbers of its own, the same for all consumers. Peers parse them by
// the numbers that they offered (RFC 8285 section 6), so each consumer's are put in right before a packet is sent to it.

// Kiln looks for this text in the worker to know that it does this (src/webrtc/worker-features.ts).
__attribute__((used)) static const char KilnMapsExtensionIds[] = "kiln:consumers-have-extension-ids";

namespace RTC
{
	namespace RTP
	{
		// Gives the extensions of the packet the ids that `wanted` has for them. What it has no id for gets one that it uses for
		// nothing else: other consumers of the packet may want it.
		void Packet::MapExtensionIds(const RTP::HeaderExtensionIds& wanted)
		{
			MS_TRACE();

			using Ids = RTP::HeaderExtensionIds;

			static constexpr uint8_t Ids::* All[] = {
				&Ids::mid,
				&Ids::rid,
				&Ids::rrid,
				&Ids::absSendTime,
				&Ids::transportWideCc01,
				&Ids::ssrcAudioLevel,
				&Ids::dependencyDescriptor,
				&Ids::videoOrientation,
				&Ids::timeOffset,
				&Ids::absCaptureTime,
				&Ids::playoutDelay,
				&Ids::mediasoupPacketId,
			};
			static constexpr uint8_t MaxOneByteId{ 14 };

			const bool isOneByte = HasOneByteExtensions();

			if (!isOneByte && !HasTwoBytesExtensions())
			{
				return;
			}

			const uint8_t maxId = isOneByte ? MaxOneByteId : 255;
			bool isMapped{ true };
			std::array<bool, 256> used{};

			for (const auto id : All)
			{
				const uint8_t present = this->headerExtensionIds.*id;

				used[wanted.*id] = true;

				if (present != 0 && wanted.*id != 0 && wanted.*id != present)
				{
					isMapped = false;
				}
			}

			// An id that is wanted for one extension may be another's that is not wanted at all.
			for (const auto id : All)
			{
				const uint8_t present = this->headerExtensionIds.*id;

				if (present != 0 && wanted.*id == 0 && used[present])
				{
					isMapped = false;
				}
			}

			if (isMapped)
			{
				return;
			}

			const auto oneByteOffsets  = this->oneByteExtensions;
			const auto twoBytesOffsets = this->twoBytesExtensions;
			uint8_t unused             = MaxOneByteId;

			std::fill(std::begin(this->oneByteExtensions), std::end(this->oneByteExtensions), -1);
			this->twoBytesExtensions.clear();

			for (const auto id : All)
			{
				const uint8_t present = this->headerExtensionIds.*id;

				if (present == 0)
				{
					continue;
				}

				uint8_t mapped = wanted.*id;

				if (mapped == 0 || mapped > maxId)
				{
					while (unused > 1 && used[unused])
					{
						--unused;
					}

					mapped       = unused;
					used[unused] = true;
				}

				this->headerExtensionIds.*id = mapped;

				if (isOneByte)
				{
					const auto offset = oneByteOffsets[present - 1];

					if (offset == -1)
					{
						continue;
					}

					auto* extension = GetHeaderExtensionValue() + offset;

					*extension                          = (mapped << 4) | (*extension & 0x0F);
					this->oneByteExtensions[mapped - 1] = offset;
				}
				else
				{
					const auto it = twoBytesOffsets.find(present);

					if (it == twoBytesOffsets.end())
					{
						continue;
					}

					*(GetHeaderExtensionValue() + it->second) = mapped;
					this->twoBytesExtensions[mapped]          = it->second;
				}
			}
		}
	} // namespace RTP
} // namespace RTC
