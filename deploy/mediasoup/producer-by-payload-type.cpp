		// Part of RtpListener::GetProducer() in the worker that deploy/build-mediasoup-worker builds: where neither SSRC nor MID nor RID
		// tells of which section a packet is, a payload type does that only one section has (RFC 9143 section 9.2).
		if (!hasMid)
		{
			// A peer may have SSRCs without end.
			static constexpr size_t MaxSsrcs{ 64 };

			RTC::Producer* found{ nullptr };

			for (const auto& kv : this->midTable)
			{
				auto* producer = kv.second;

				for (const auto& codec : producer->GetRtpParameters().codecs)
				{
					if (codec.payloadType != packet->GetPayloadType())
					{
						continue;
					}
					else if (found && found != producer)
					{
						return nullptr;
					}

					found = producer;
				}
			}

			if (found && this->ssrcTable.size() < MaxSsrcs)
			{
				this->ssrcTable[packet->GetSsrc()] = found;
			}

			if (found)
			{
				return found;
			}
		}
